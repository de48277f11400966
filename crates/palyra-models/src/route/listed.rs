//! Every model that a route names, once, with the routes that name it.

use serde::Serialize;

use super::target::Target;
use crate::accounts::Accounts;

/// A model and where it is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// The model.
    pub target: Target,
    /// The routes that name it with its place in each, such as `default 1`.
    pub routes: Vec<String>,
}

/// The models of all routes, in the order in which they are first named.
#[must_use]
pub fn listed(accounts: &Accounts) -> Vec<Listed> {
    let mut all: Vec<Listed> = Vec::new();
    for (route, list) in accounts.routes.lists() {
        for (at, name) in list.iter().enumerate() {
            let place = format!("{route} {}", at + 1);
            if let Some(known) = all.iter_mut().find(|known| known.target.name == *name) {
                known.routes.push(place);
            } else if let Some(account) = accounts.providers.get(&name.provider) {
                all.push(Listed { target: Target::of(name.clone(), account), routes: vec![place] });
            }
        }
    }
    all
}
