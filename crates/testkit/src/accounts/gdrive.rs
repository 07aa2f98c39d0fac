//! The requests of Google Drive, version 3.

use super::http::{Reply, Request};
use super::state::{Shared, State as Account};
use super::tree::{Item, ROOT};
use serde_json::{Value, json};

const FOLDER: &str = "application/vnd.google-apps.folder";

fn refuse(status: u16, reason: &str) -> Reply {
    Reply::json(
        status,
        &json!({ "error": { "code": status, "message": "a sentence",
        "errors": [{ "domain": "global", "reason": reason }] } }),
    )
}

fn not_found() -> Reply {
    refuse(404, "notFound")
}

pub(super) fn answer(shared: &Shared, request: &Request) -> Reply {
    let mut state = shared.state();
    let state = &mut *state;
    if let Some(upload) = request.path.strip_prefix("/open/") {
        return finish(state, request, upload);
    }
    if let Some(of) = request.path.strip_prefix("/upload/drive/v3/files") {
        return upload(shared, state, request, of.trim_start_matches('/'));
    }
    let Some(of) = request.path.strip_prefix("/drive/v3/files") else { return not_found() };
    match (request.method.as_str(), of.trim_start_matches('/')) {
        ("GET", "") => list(state, request),
        ("GET", "generateIds") => give_ids(state, request),
        ("POST", "") => match request.json() {
            Some(about) => make(state, &about, None),
            None => refuse(400, "parseError"),
        },
        ("GET", id) => get(state, request, id),
        ("DELETE", id) => match state.tree.remove(id) {
            Some(_) => Reply::bytes(204, Vec::new()),
            None => not_found(),
        },
        _ => refuse(400, "badRequest"),
    }
}

fn told(item: &Item) -> Value {
    // Time goes on by an act at a time.
    let made = format!(
        "2026-01-01T{:02}:{:02}:{:02}.000Z",
        item.made / 3600 % 24,
        item.made / 60 % 60,
        item.made % 60
    );
    let mut told = json!({ "id": item.id, "name": item.name, "createdTime": made,
        "trashed": false });
    if let Some(data) = &item.data {
        told["size"] = json!(data.len().to_string());
    }
    told
}

fn give_ids(state: &mut Account, request: &Request) -> Reply {
    let Some(count @ 1..=1000) = request.query("count").parse::<u64>().ok() else {
        return refuse(400, "invalidParameter");
    };
    let ids: Vec<_> = (0..count)
        .map(|_| {
            state.gdrive.next += 1;
            format!("made{:08}", state.gdrive.next)
        })
        .collect();
    state.gdrive.given.extend(ids.iter().cloned());
    Reply::json(200, &json!({ "ids": ids, "space": "drive", "kind": "drive#generatedIds" }))
}

/// Makes a file or a folder. An id is taken once, and must have been given out.
fn make(state: &mut Account, about: &Value, data: Option<Vec<u8>>) -> Reply {
    let parent = about["parents"][0].as_str().unwrap_or(ROOT);
    if parent != ROOT && state.tree.get(parent).is_none_or(|it| it.data.is_some()) {
        return not_found();
    }
    let id = about["id"].as_str().map(str::to_owned);
    if let Some(id) = &id {
        if !state.gdrive.given.contains(id) {
            return refuse(400, "invalid");
        }
        if !state.gdrive.used.insert(id.clone()) {
            return refuse(409, "fileIdInUse");
        }
    }
    let is_folder = about["mimeType"] == FOLDER;
    let data = if is_folder { None } else { Some(data.unwrap_or_default()) };
    let name = about["name"].as_str().unwrap_or("Untitled");
    let item = state.tree.make(id, parent, name, data);
    Reply::json(200, &told(&item))
}

fn get(state: &Account, request: &Request, id: &str) -> Reply {
    match state.tree.get(id) {
        None => not_found(),
        Some(item) if request.query("alt") != "media" => Reply::json(200, &told(item)),
        Some(Item { data: Some(data), .. }) => Reply::file(request, data),
        Some(_) => refuse(403, "fileNotDownloadable"),
    }
}

fn upload(shared: &Shared, state: &mut Account, request: &Request, id: &str) -> Reply {
    let replaced = match request.method.as_str() {
        "POST" if id.is_empty() => None,
        "PATCH" if state.tree.get(id).is_some() => Some(id.to_owned()),
        "PATCH" => return not_found(),
        _ => return refuse(400, "badRequest"),
    };
    match request.query("uploadType") {
        "resumable" => {
            let len = request.header("x-upload-content-length").parse().ok();
            let (Some(about), Some(len)) = (request.json(), len) else {
                return refuse(400, "badRequest");
            };
            state.gdrive.next += 1;
            let name = format!("upload{}", state.gdrive.next);
            state.gdrive.uploads.insert(name.clone(), (about, replaced, len));
            let there = format!("http://{}/open/{name}", shared.address);
            Reply::bytes(200, Vec::new()).header("location", &there)
        }
        kind if request.body.len() > 5 << 20 => refuse(413, kind),
        "media" => match replaced {
            Some(id) => replace(state, &id, request.body.clone()),
            None => make(state, &json!({}), Some(request.body.clone())),
        },
        "multipart" if replaced.is_none() => match parts(request) {
            Some((about, data)) => make(state, &about, Some(data)),
            None => refuse(400, "badContent"),
        },
        _ => refuse(400, "badRequest"),
    }
}

/// The second request of a larger upload. It may come again, if its answer was lost.
fn finish(state: &mut Account, request: &Request, upload: &str) -> Reply {
    let Some((about, replaced, len)) = state.gdrive.uploads.get(upload).cloned() else {
        return not_found();
    };
    if request.method != "PUT" || request.body.len() != len {
        return refuse(400, "badRequest");
    }
    match replaced {
        Some(id) => replace(state, &id, request.body.clone()),
        None => make(state, &about, Some(request.body.clone())),
    }
}

fn replace(state: &mut Account, id: &str, data: Vec<u8>) -> Reply {
    let item = state.tree.replace(id, data);
    item.map_or_else(not_found, |item| Reply::json(200, &told(&item)))
}

/// The two parts of a multipart body: what the file is, and its bytes.
fn parts(request: &Request) -> Option<(Value, Vec<u8>)> {
    let kind = request.header("content-type").strip_prefix("multipart/related; boundary=")?;
    let (begin, end) = (format!("--{kind}\r\n"), format!("\r\n--{kind}--\r\n"));
    let between = format!("\r\n--{kind}\r\n");
    let body = request.body.strip_prefix(begin.as_bytes())?.strip_suffix(end.as_bytes())?;
    let at = position(body, between.as_bytes())?;
    let (about, data) = (&body[..at], &body[at + between.len()..]);
    let inner = |part: &[u8]| Some(part[position(part, b"\r\n\r\n")? + 4..].to_vec());
    Some((serde_json::from_slice(&inner(about)?).ok()?, inner(data)?))
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|it| it == wanted)
}

/// A page of what a query finds. It knows the few queries that the driver has.
fn list(state: &Account, request: &Request) -> Reply {
    let mut items: Vec<&Item> = match request.query("q") {
        "" => return refuse(400, "invalid"),
        query => {
            let terms: Vec<_> = query.split(" and ").collect();
            let of = |term: &&str| term.strip_suffix(" in parents").map(unquoted);
            let Some(parent) = terms.iter().find_map(of) else { return refuse(400, "invalid") };
            let holds = |item: &&Item| {
                terms.iter().all(|term| match term.split_once(' ') {
                    Some(("name", name)) => {
                        item.name == unquoted(name.strip_prefix("= ").unwrap_or(name))
                    }
                    Some(("mimeType", kind)) => item.data.is_none() == kind.starts_with("= "),
                    _ => true,
                })
            };
            state.tree.children(&parent).filter(holds).collect()
        }
    };
    items.retain(|it| it.made <= state.shown);
    // In no order that means anything.
    items.sort_by(|one, two| two.id.cmp(&one.id));
    let from = request.query("pageToken").parse().unwrap_or(0);
    let page: Vec<_> = items.iter().skip(from).take(state.page).map(|it| told(it)).collect();
    let upto = from + page.len();
    let mut body = json!({ "files": page });
    if upto < items.len() {
        body["nextPageToken"] = json!(upto.to_string());
    }
    Reply::json(200, &body)
}

fn unquoted(text: &str) -> String {
    text.trim_matches('\'').replace("\\'", "'").replace("\\\\", "\\")
}
