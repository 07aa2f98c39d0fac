//! The requests of Dropbox, version 2.

use super::http::{Reply, Request};
use super::state::{Shared, State as Account};
use super::tree::{Item, ROOT, Tree};
use serde_json::{Value, json};

fn refuse(summary: &str) -> Reply {
    Reply::json(409, &json!({ "error_summary": format!("{summary}/.."), "error": {} }))
}

fn bad(why: &str) -> Reply {
    Reply::text(400, &format!("Error in call to API function: {why}"))
}

pub(super) fn answer(shared: &Shared, request: &Request) -> Reply {
    let Some(route) = request.path.strip_prefix("/2/files/") else {
        return Reply::text(404, "no such function");
    };
    if request.method != "POST" {
        return Reply::text(405, "POST only");
    }
    let uploads = matches!(route, "upload" | "upload_session/start" | "upload_session/append_v2");
    let in_header = uploads || route == "download";
    let argument = if in_header {
        let header = request.header("dropbox-api-arg");
        if !header.is_ascii() {
            return bad("the header is not ASCII");
        }
        serde_json::from_str(header).ok()
    } else {
        request.json()
    };
    let Some(argument) = argument else { return bad("could not decode input as JSON") };
    let wants = match route {
        _ if uploads => "application/octet-stream",
        "download" => "",
        _ => "application/json",
    };
    if request.header("content-type") != wants {
        return bad("the Content-Type header is wrong");
    }
    if !in_header && argument["path"].as_str().is_some_and(|it| !is_path(it, true)) {
        return bad("path: did not match pattern");
    }
    if uploads && request.body.len() > shared.state().dropbox.longest {
        return Reply::text(413, "payload too large");
    }
    match route {
        "upload" => upload(shared, request, &argument),
        "upload_session/start" => start(&mut shared.state(), request, &argument),
        "upload_session/append_v2" => append(&mut shared.state(), request, &argument),
        "upload_session/finish_batch_v2" => finish(shared, &argument),
        "download" => download(&shared.state(), request, &argument),
        "get_metadata" => metadata(&shared.state(), &argument),
        "list_folder" => list(&mut shared.state(), &argument),
        "list_folder/continue" => list_on(&mut shared.state(), &argument),
        "delete_batch" => delete(shared, &argument),
        "delete_batch/check" => check(&mut shared.state(), &argument),
        _ => Reply::text(404, "no such function"),
    }
}

fn is_path(path: &str, may_be_root: bool) -> bool {
    path.is_empty() && may_be_root || path.starts_with('/') && !path.ends_with('/')
}

fn too_many_writes() -> Reply {
    let body = json!({ "error_summary": "too_many_write_operations/..",
        "error": { "reason": { ".tag": "too_many_write_operations" }, "retry_after": 0 } });
    Reply::json(429, &body)
}

/// Stores a file as the commit says. The error is the word for it.
fn store(tree: &mut Tree, commit: &Value, data: Vec<u8>) -> Result<Item, &'static str> {
    let path = commit["path"].as_str().filter(|it| is_path(it, false)).ok_or("malformed_path")?;
    let (folder, name) = path.rsplit_once('/').ok_or("malformed_path")?;
    let folder = tree.make_folders(folder).ok_or("conflict/file_ancestor")?;
    let held = tree.child(&folder, name).cloned();
    if held.as_ref().is_some_and(|it| it.data.is_none()) {
        return Err("conflict/folder");
    }
    match (commit["mode"].as_str(), held) {
        (Some("overwrite"), Some(it)) => tree.replace(&it.id, data).ok_or("conflict/file"),
        (Some("add" | "overwrite"), None) => Ok(tree.make(None, &folder, name, Some(data))),
        // Without `strict_conflict` the same content is no conflict.
        (Some("add"), Some(it)) if commit["strict_conflict"] != true && it.data == Some(data) => {
            Ok(it)
        }
        (Some("add"), Some(_)) if commit["autorename"] == true => Err("the test must not rename"),
        (Some("add"), Some(_)) => Err("conflict/file"),
        _ => Err("the mode is unknown"),
    }
}

fn told(item: &Item) -> Value {
    match &item.data {
        Some(data) => json!({ ".tag": "file", "name": item.name, "id": format!("id:{}", item.id),
            "rev": format!("{:09x}", item.made), "size": data.len() }),
        None => json!({ ".tag": "folder", "name": item.name, "id": format!("id:{}", item.id) }),
    }
}

fn upload(shared: &Shared, request: &Request, argument: &Value) -> Reply {
    let stored = shared.write(|state| store(&mut state.tree, argument, request.body.clone()));
    match stored {
        None => too_many_writes(),
        Some(Ok(item)) => Reply::json(200, &told(&item)),
        Some(Err(why)) if why.contains(' ') => bad(why),
        Some(Err(why)) => refuse(&format!("path/{why}")),
    }
}

fn start(state: &mut Account, request: &Request, argument: &Value) -> Reply {
    let (name, closed) = (state.dropbox.name("session"), argument["close"] == true);
    state.dropbox.sessions.insert(name.clone(), (request.body.clone(), closed));
    Reply::json(200, &json!({ "session_id": name }))
}

fn append(state: &mut Account, request: &Request, argument: &Value) -> Reply {
    let name = argument["cursor"]["session_id"].as_str().unwrap_or_default();
    let Some((data, closed)) = state.dropbox.sessions.get_mut(name) else {
        return refuse("not_found");
    };
    if *closed {
        return refuse("closed");
    }
    if argument["cursor"]["offset"] != data.len() {
        return refuse("incorrect_offset");
    }
    data.extend_from_slice(&request.body);
    *closed = argument["close"] == true;
    Reply::json(200, &Value::Null)
}

fn finish(shared: &Shared, argument: &Value) -> Reply {
    let Some(entries) = argument["entries"].as_array() else { return bad("entries: missing") };
    if entries.is_empty() || entries.len() > 1000 {
        return bad("entries: 1 to 1000");
    }
    let failure = |failure: Value| json!({ ".tag": "failure", "failure": failure });
    let done = shared.write(|state| {
        let one = |entry: &Value| {
            let session = entry["cursor"]["session_id"].as_str().unwrap_or_default();
            let lookup = |why: &str| {
                failure(json!({ ".tag": "lookup_failed", "lookup_failed": { ".tag": why } }))
            };
            let Some((data, closed)) = state.dropbox.sessions.remove(session) else {
                return lookup("not_found");
            };
            if !closed {
                return lookup("not_closed");
            }
            if entry["cursor"]["offset"] != data.len() {
                return lookup("incorrect_offset");
            }
            match store(&mut state.tree, &entry["commit"], data) {
                Ok(item) => {
                    let mut told = told(&item);
                    told[".tag"] = json!("success");
                    told
                }
                Err(_) => failure(json!({ ".tag": "path", "path":
                    { ".tag": "conflict", "conflict": { ".tag": "file" } } })),
            }
        };
        entries.iter().map(one).collect::<Vec<_>>()
    });
    let busy = || failure(json!({ ".tag": "too_many_write_operations" }));
    let outcomes = done.unwrap_or_else(|| entries.iter().map(|_| busy()).collect());
    Reply::json(200, &json!({ "entries": outcomes }))
}

fn found<'a>(state: &'a Account, argument: &Value) -> Option<&'a Item> {
    state.tree.get(&state.tree.find(argument["path"].as_str()?)?)
}

fn download(state: &Account, request: &Request, argument: &Value) -> Reply {
    match found(state, argument).map(|item| (item, &item.data)) {
        None => refuse("path/not_found"),
        Some((_, None)) => refuse("path/not_file"),
        Some((item, Some(data))) => {
            let reply = Reply::file(request, data);
            reply.header("dropbox-api-result", &told(item).to_string())
        }
    }
}

fn metadata(state: &Account, argument: &Value) -> Reply {
    match found(state, argument) {
        None => refuse("path/not_found"),
        Some(item) => Reply::json(200, &told(item)),
    }
}

fn list(state: &mut Account, argument: &Value) -> Reply {
    if argument["limit"].as_u64().is_some_and(|it| !(1..=2000).contains(&it)) {
        return bad("limit: 1 to 2000");
    }
    match state.tree.find(argument["path"].as_str().unwrap_or("-")) {
        None => refuse("path/not_found"),
        Some(folder) => page(state, folder, 0),
    }
}

/// A page is shorter than was asked for, as the service may do.
fn page(state: &mut Account, folder: String, from: usize) -> Reply {
    let all: Vec<_> = state.tree.children(&folder).collect();
    let entries: Vec<_> = all.iter().skip(from).take(state.page).map(|it| told(it)).collect();
    let (upto, cursor) = (from + entries.len(), state.dropbox.name("cursor"));
    let body = json!({ "entries": entries, "cursor": cursor, "has_more": upto < all.len() });
    state.dropbox.cursors.insert(cursor, (folder, upto));
    Reply::json(200, &body)
}

fn list_on(state: &mut Account, argument: &Value) -> Reply {
    let cursor = argument["cursor"].as_str().unwrap_or_default();
    match state.dropbox.cursors.get(cursor).cloned() {
        None => refuse("reset"),
        Some((folder, from)) if folder == ROOT || state.tree.get(&folder).is_some() => {
            page(state, folder, from)
        }
        Some(_) => refuse("path/not_found"),
    }
}

fn delete(shared: &Shared, argument: &Value) -> Reply {
    let Some(entries) = argument["entries"].as_array() else { return bad("entries: missing") };
    let done = shared.write(|state| {
        let one = |entry: &Value| match state.tree.find(entry["path"].as_str().unwrap_or("-")) {
            Some(id) if id != ROOT => {
                let item = state.tree.remove(&id);
                json!({ ".tag": "success", "metadata": item.as_ref().map(told) })
            }
            _ => json!({ ".tag": "failure", "failure":
                { ".tag": "path_lookup", "path_lookup": { ".tag": "not_found" } } }),
        };
        let outcomes: Vec<_> = entries.iter().map(one).collect();
        let answer = json!({ ".tag": "complete", "entries": outcomes });
        // Some are done at once, and some in the background.
        if state.dice.percent(50) {
            return answer;
        }
        let job = state.dropbox.name("job");
        state.dropbox.jobs.insert(job.clone(), (2, answer));
        json!({ ".tag": "async_job_id", "async_job_id": job })
    });
    done.map_or_else(too_many_writes, |answer| Reply::json(200, &answer))
}

fn check(state: &mut Account, argument: &Value) -> Reply {
    let job = argument["async_job_id"].as_str().unwrap_or_default();
    match state.dropbox.jobs.get_mut(job) {
        None => refuse("invalid_async_job_id"),
        Some((0, answer)) => Reply::json(200, answer),
        Some((left, _)) => {
            *left -= 1;
            Reply::json(200, &json!({ ".tag": "in_progress" }))
        }
    }
}
