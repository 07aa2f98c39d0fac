//! The files and folders of an account.

use std::collections::BTreeMap;

/// What all services tell of an item.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) parent: String,
    pub(super) name: String,
    /// `None` of a folder.
    pub(super) data: Option<Vec<u8>>,
    /// How often something had been done to the account when it was made.
    pub(super) made: u64,
}

/// Items by their ids. Several may have one name, if the service allows it.
#[derive(Default)]
pub(super) struct Tree {
    items: BTreeMap<String, Item>,
    acts: u64,
}

/// The id of the account's own folder.
pub(super) const ROOT: &str = "root";

impl Tree {
    /// Makes an item, with an id of its own unless one is given.
    pub(super) fn make(
        &mut self,
        id: Option<String>,
        parent: &str,
        name: &str,
        data: Option<Vec<u8>>,
    ) -> Item {
        self.acts += 1;
        let id = id.unwrap_or_else(|| format!("id{:08}", self.acts));
        let (parent, name) = (parent.to_owned(), name.to_owned());
        let item = Item { id: id.clone(), parent, name, data, made: self.acts };
        self.items.insert(id, item.clone());
        item
    }

    /// How often something was done to the account.
    pub(super) fn acts(&self) -> u64 {
        self.acts
    }

    pub(super) fn get(&self, id: &str) -> Option<&Item> {
        self.items.get(id)
    }

    pub(super) fn replace(&mut self, id: &str, data: Vec<u8>) -> Option<Item> {
        self.acts += 1;
        let item = self.items.get_mut(id)?;
        item.data = Some(data);
        Some(item.clone())
    }

    /// Removes an item, and all that is in it.
    pub(super) fn remove(&mut self, id: &str) -> Option<Item> {
        let inside: Vec<_> = self.children(id).map(|it| it.id.clone()).collect();
        for it in inside {
            self.remove(&it);
        }
        self.items.remove(id)
    }

    pub(super) fn children(&self, parent: &str) -> impl Iterator<Item = &Item> {
        self.items.values().filter(move |it| it.parent == parent)
    }

    /// The item of a name in a folder. Upper and lower case are the same.
    pub(super) fn child(&self, parent: &str, name: &str) -> Option<&Item> {
        self.children(parent).find(|it| it.name.eq_ignore_ascii_case(name))
    }

    /// The id at a path of names.
    pub(super) fn find(&self, path: &str) -> Option<String> {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        parts.try_fold(ROOT.to_owned(), |at, part| Some(self.child(&at, part)?.id.clone()))
    }

    /// The id of the folder at a path, made where it is missing. `None` where a file is.
    pub(super) fn make_folders(&mut self, path: &str) -> Option<String> {
        let mut at = ROOT.to_owned();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            at = match self.child(&at, part) {
                Some(it) if it.data.is_some() => return None,
                Some(it) => it.id.clone(),
                None => self.make(None, &at, part, None).id,
            };
        }
        Some(at)
    }

    /// The paths of all files.
    pub(super) fn files(&self) -> Vec<String> {
        let path = |item: &Item| {
            let (mut path, mut parent) = (item.name.clone(), item.parent.clone());
            while let Some(folder) = self.items.get(&parent) {
                path = format!("{}/{path}", folder.name);
                parent.clone_from(&folder.parent);
            }
            path
        };
        let mut files: Vec<_> =
            self.items.values().filter(|it| it.data.is_some()).map(path).collect();
        files.sort();
        files
    }

    /// What is in the files of a folder.
    pub(super) fn contents(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        let folder = self.find(folder).expect("a folder");
        self.children(&folder).filter_map(|it| Some((it.name.clone(), it.data.clone()?))).collect()
    }

    /// Lets a folder have exactly these files.
    pub(super) fn hold(&mut self, folder: &str, files: &BTreeMap<String, Vec<u8>>) {
        let id = self.find(folder).expect("a folder");
        for (name, data) in self.contents(folder) {
            let there = self.child(&id, &name).expect("a file").id.clone();
            match files.get(&name) {
                Some(wanted) if *wanted == data => {}
                Some(wanted) => drop(self.replace(&there, wanted.clone())),
                None => drop(self.remove(&there)),
            }
        }
        for (name, data) in files {
            if self.child(&id, name).is_none() {
                self.make(None, &id, name, Some(data.clone()));
            }
        }
    }
}
