//! The requests of OneDrive, by Microsoft Graph 1.0.

use super::http::{Reply, Request};
use super::state::{Shared, State};
use super::tree::{Item, ROOT};
use serde_json::{Value, json};

fn refuse(status: u16, code: &str) -> Reply {
    Reply::json(status, &json!({ "error": { "code": code, "message": "a sentence" } }))
}

fn not_found() -> Reply {
    refuse(404, "itemNotFound")
}

pub(super) fn answer(shared: &Shared, request: &Request) -> Reply {
    let mut state = shared.state();
    if let Some(id) = request.path.strip_prefix("/open/") {
        return open(&state, request, id);
    }
    let Some(rest) = request.path.strip_prefix("/v1.0/me/drive/root") else {
        return refuse(404, "BadRequest");
    };
    // `:/folder/name:/of`, `:/folder/name`, or `/of` of the account's own folder.
    let (path, of) = match rest.strip_prefix(":/") {
        Some(rest) => rest.split_once(":/").unwrap_or((rest, "")),
        None => ("", rest.trim_start_matches('/')),
    };
    match (request.method.as_str(), of) {
        ("GET", "") => item(&state, path),
        ("GET", "content") => content(shared, &state, path),
        ("GET", "children") => children(shared, &state, request, path),
        ("PUT", "content") => put(&mut state, request, path),
        ("POST", "children") => make_folder(&mut state, request, path),
        ("DELETE", "") => delete(&mut state, path),
        _ => refuse(400, "invalidRequest"),
    }
}

fn told(item: &Item) -> Value {
    match &item.data {
        Some(data) => json!({ "id": item.id, "name": item.name, "size": data.len(), "file": {},
            "eTag": format!("\"{}\"", item.made) }),
        None => json!({ "id": item.id, "name": item.name, "size": 0, "folder": {} }),
    }
}

fn find<'a>(state: &'a State, path: &str) -> Option<&'a Item> {
    state.tree.get(&state.tree.find(path)?)
}

fn item(state: &State, path: &str) -> Reply {
    find(state, path).map_or_else(not_found, |item| Reply::json(200, &told(item)))
}

/// Content is somewhere else: who has that address may have it.
fn content(shared: &Shared, state: &State, path: &str) -> Reply {
    match find(state, path) {
        Some(item) if item.data.is_some() => {
            let there = format!("http://{}/open/{}", shared.address, item.id);
            Reply::bytes(302, Vec::new()).header("location", &there)
        }
        Some(_) => refuse(400, "invalidRequest"),
        None => not_found(),
    }
}

fn open(state: &State, request: &Request, id: &str) -> Reply {
    match state.tree.get(id).and_then(|item| item.data.as_ref()) {
        Some(data) => Reply::file(request, data),
        None => Reply::text(404, "gone"),
    }
}

fn put(state: &mut State, request: &Request, path: &str) -> Reply {
    if request.header("content-type").is_empty() {
        return refuse(400, "invalidRequest");
    }
    if request.body.len() > 250_000_000 {
        return refuse(413, "invalidRequest");
    }
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let Some(folder) = state.tree.find(folder) else { return not_found() };
    let held = state.tree.child(&folder, name).cloned();
    let data = request.body.clone();
    let conflict = request.query("@microsoft.graph.conflictBehavior");
    match (conflict, held) {
        (_, Some(it)) if it.data.is_none() => refuse(409, "nameAlreadyExists"),
        ("fail", Some(_)) => refuse(409, "nameAlreadyExists"),
        ("" | "replace", Some(it)) => {
            let item = state.tree.replace(&it.id, data);
            item.map_or_else(not_found, |item| Reply::json(200, &told(&item)))
        }
        ("" | "replace" | "fail", None) => {
            Reply::json(201, &told(&state.tree.make(None, &folder, name, Some(data))))
        }
        _ => refuse(400, "invalidRequest"),
    }
}

fn make_folder(state: &mut State, request: &Request, path: &str) -> Reply {
    let Some(parent) = state.tree.find(path) else { return not_found() };
    let body = request.json().unwrap_or_default();
    let (Some(name), true) = (body["name"].as_str(), body["folder"].is_object()) else {
        return refuse(400, "invalidRequest");
    };
    if state.tree.child(&parent, name).is_some() {
        return refuse(409, "nameAlreadyExists");
    }
    Reply::json(201, &told(&state.tree.make(None, &parent, name, None)))
}

fn delete(state: &mut State, path: &str) -> Reply {
    match state.tree.find(path) {
        Some(id) if id != ROOT => {
            state.tree.remove(&id);
            Reply::bytes(204, Vec::new())
        }
        Some(_) => refuse(403, "accessDenied"),
        None => not_found(),
    }
}

/// A page is shorter than was asked for, as the service may do.
fn children(shared: &Shared, state: &State, request: &Request, path: &str) -> Reply {
    let Some(folder) = state.tree.find(path) else { return not_found() };
    let from = request.query("$skiptoken").parse().unwrap_or(0);
    let all: Vec<_> = state.tree.children(&folder).collect();
    let page: Vec<_> = all.iter().skip(from).take(state.page).map(|it| told(it)).collect();
    let upto = from + page.len();
    let mut body = json!({ "value": page });
    if upto < all.len() {
        let path = request.path.replace(' ', "%20");
        let next = format!("http://{}{path}?$skiptoken={upto}", shared.address);
        body["@odata.nextLink"] = json!(next);
    }
    Reply::json(200, &body)
}
