//! Everything that could be used: keys in the environment, servers that variables name, servers on this machine.

use palyra_common::Environment;

use super::environment::offers_of_environment;
use super::local::{offers_of_places, usual_places};
use super::offer::Offer;

/// Finds all of it. Servers are asked for their lists of models and for nothing else.
pub async fn discover(environment: &Environment) -> Vec<Offer> {
    let mut offers = offers_of_environment(environment);
    for found in offers_of_places(&usual_places(environment)).await {
        match offers.iter_mut().find(|offer| offer.name == found.name) {
            // The same server with its key; what was asked for by name stays what to begin with.
            Some(known) => {
                let preferred = known.models.iter().chain(&found.models);
                let mut models: Vec<String> = Vec::new();
                preferred.for_each(|model| {
                    if !models.contains(model) {
                        models.push(model.clone());
                    }
                });
                let account = known.account.clone();
                *known = Offer::new(&known.name, account, models, format!("{}; {}", known.why, found.why));
            }
            None => offers.push(found),
        }
    }
    offers
}
