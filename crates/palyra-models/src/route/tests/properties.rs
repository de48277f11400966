//! Whatever providers do, a call ends, and all of it is told.

use proptest::prelude::*;

use super::support::{Reply, TWO, answer, request, router_with};
use crate::{ModelError, ModelErrorClass, RoutePolicy};

fn reply() -> impl Strategy<Value = Reply> {
    let class = proptest::sample::select(ModelErrorClass::ALL);
    let status = proptest::option::of(proptest::sample::select(vec![400_u16, 404, 429, 500]));
    let wait = proptest::option::of(0_u64..100_000);
    (class, status, wait, 0_u8..4).prop_map(|(class, status, retry_after_ms, how)| {
        let error = ModelError { status, retry_after_ms, ..ModelError::new(class, "x") };
        match how {
            0 => Reply::Say("fine"),
            1 => Reply::Break("half", error),
            _ => Reply::Refuse(error),
        }
    })
}

proptest! {
    #[test]
    fn every_call_ends_and_every_try_is_told(
        a in proptest::collection::vec(reply(), 0..20),
        b in proptest::collection::vec(reply(), 0..20),
        calls in 1_usize..4,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let policy = RoutePolicy { outage_patience: std::time::Duration::ZERO, ..RoutePolicy::default() };
            let (router, world) = router_with(TWO, policy.clone());
            world.tell("a", a);
            world.tell("b", b);
            for _ in 0..calls {
                let outcome = answer(&router, request()).await;
                let asked = world.asked().len();
                let waited: u64 = world.waits().iter().sum();
                prop_assert!(asked <= usize::try_from(policy.most_tries).unwrap());
                prop_assert!(u128::from(waited) <= policy.patience.as_millis());
                if let Ok(turn) = outcome {
                    prop_assert_eq!(turn.attempts.len() + 1, asked);
                    prop_assert_eq!(turn.text.as_str(), "fine");
                }
            }
            Ok(())
        })?;
    }
}
