use std::path::Path;

use palyra_common::AuxiliaryTaskKind;

use super::*;

const FILE: &str = r#"
version = 1
[providers.home]
kind = "ollama"
[providers.work]
kind = "openai_compatible"
base_url = "https://work.example/v1"
[routes]
default = ["work/large", "work/medium", "home/small"]
low_cost = ["home/small"]
vision_capable = ["work/eyes"]
[routes.tasks]
classification = ["home/tiny"]
[routes.agents]
reviewer = ["work/strict", "work/large"]
"#;

fn accounts() -> Accounts {
    Accounts::parse(FILE, Path::new("models.toml")).unwrap()
}

fn chosen(wish: Wish<'_>) -> String {
    let chain = choose(&accounts(), &Naming::Full, wish).unwrap();
    let names: Vec<String> = chain.targets.iter().map(|target| target.name.to_string()).collect();
    format!("{}: {}", chain.route, names.join(" "))
}

#[test]
fn routes_are_found_from_the_strongest_to_the_weakest() {
    let turn = Wish::turn();
    let task = |kind| Wish { purpose: Purpose::Auxiliary(kind), ..turn };
    let all = "work/large work/medium home/small";
    for (wish, expected) in [
        (turn, format!("routes.default: {all}")),
        (Wish { agent: Some("reviewer"), ..turn }, "routes.agents.reviewer: work/strict work/large".to_owned()),
        (Wish { agent: Some("somebody"), ..turn }, format!("routes.default: {all}")),
        (Wish { preference: Some(ModelPreference::LowCost), ..turn }, "routes.low_cost: home/small".to_owned()),
        (Wish { preference: Some(ModelPreference::LowLatency), ..turn }, format!("routes.default: {all}")),
        (task(AuxiliaryTaskKind::Classification), "routes.tasks.classification: home/tiny".to_owned()),
        (task(AuxiliaryTaskKind::Summary), "routes.low_cost: home/small".to_owned()),
        (task(AuxiliaryTaskKind::Vision), "routes.vision_capable: work/eyes".to_owned()),
        (task(AuxiliaryTaskKind::RecallSearch), format!("routes.default: {all}")),
        // The run's own model is no choice by name; another one is, and its tasks stay with it.
        (Wish { model: "work/large", ..task(AuxiliaryTaskKind::Summary) }, "routes.low_cost: home/small".to_owned()),
        (
            Wish { model: "work/medium", ..task(AuxiliaryTaskKind::Summary) },
            "routes.default: work/medium home/small".to_owned(),
        ),
        (Wish { model: "medium", ..turn }, "routes.default: work/medium home/small".to_owned()),
        (Wish { model: "low_cost", ..turn }, "routes.low_cost: home/small".to_owned()),
        (Wish { model: "home/qwen3:8b", ..turn }, "providers: home/qwen3:8b".to_owned()),
    ] {
        assert_eq!(chosen(wish), expected, "{wish:?}");
    }
}

#[test]
fn a_model_that_nobody_has_is_refused_with_what_was_meant() {
    let error = choose(&accounts(), &Naming::Full, Wish { model: "work/larg", ..Wish::turn() });
    assert!(error.is_ok(), "any model of a known provider may be asked for");
    let error = choose(&accounts(), &Naming::Full, Wish { model: "larger", ..Wish::turn() }).unwrap_err();
    assert_eq!((error.class, error.status), (ModelErrorClass::Permanent, Some(404)));
    let error = choose(&accounts(), &Naming::Full, Wish { model: "wrok/large", ..Wish::turn() }).unwrap_err();
    assert!(error.message.contains("did you mean `work/large`?"), "{error}");
    let nothing = choose(&Accounts::default(), &Naming::Full, Wish::turn()).unwrap_err();
    assert!(nothing.message.contains("palyra models set-default"), "{nothing}");
}

#[test]
fn with_one_provider_every_name_is_passed_on() {
    let naming = Naming::Bare { provider: "work".to_owned(), model: "usual".to_owned() };
    let name =
        |model| choose(&accounts(), &naming, Wish { model, ..Wish::turn() }).unwrap().targets.remove(0).name.model;
    assert_eq!((name(""), name("gpt/anything")), ("usual".to_owned(), "gpt/anything".to_owned()));
    assert_eq!((name("work"), name("work/usual")), ("usual".to_owned(), "usual".to_owned()), "one model has one name");
}
