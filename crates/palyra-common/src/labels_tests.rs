//! The lattice laws that every later guarantee leans on.

use proptest::prelude::{Strategy, any, proptest};
use proptest::{prop_assert, prop_assert_eq};

use super::*;

fn label() -> impl Strategy<Value = Label> {
    let names = proptest::collection::btree_set("[a-c]", 0..3);
    let origins = proptest::collection::btree_set("[a-c]".prop_map(DataOrigin::Server), 0..3);
    (0..Integrity::ALL.len(), 0..Confidentiality::ALL.len(), any::<bool>(), names.clone(), names, origins).prop_map(
        |(integrity, confidentiality, restricted, readers, sources, origins)| Label {
            integrity: Integrity::ALL[integrity],
            confidentiality: Confidentiality::ALL[confidentiality],
            readers: restricted.then_some(readers),
            sources,
            origins,
        },
    )
}

/// What a label says once it says all of it: equal labels are equal in this form. What people wrote themselves may go anywhere, so it does not count.
fn told(label: &Label) -> Label {
    Label { origins: places(label), ..label.clone() }
}

fn places(label: &Label) -> BTreeSet<DataOrigin> {
    let mut origins = label.all_origins();
    origins.retain(|origin| !matches!(origin, DataOrigin::User | DataOrigin::Operator));
    origins
}

proptest! {
    #[test]
    fn join_is_associative_commutative_and_idempotent(a in label(), b in label(), c in label()) {
        prop_assert_eq!(a.join(&b), b.join(&a));
        prop_assert_eq!(told(&a.join(&b).join(&c)), told(&a.join(&b.join(&c))));
        prop_assert_eq!(told(&a.join(&a)), told(&a));
    }

    #[test]
    fn join_never_raises_trust_or_widens_readers(a in label(), b in label()) {
        let joined = a.join(&b);
        prop_assert!(joined.integrity >= a.integrity && joined.integrity >= b.integrity);
        prop_assert!(joined.confidentiality >= a.confidentiality && joined.confidentiality >= b.confidentiality);
        if let Some(readers) = &a.readers {
            prop_assert!(joined.readers.as_ref().is_some_and(|joined| joined.is_subset(readers)));
        }
        prop_assert!(a.sources.is_subset(&joined.sources));
        prop_assert!(places(&a).is_subset(&places(&joined)));
        prop_assert!(places(&b).is_subset(&places(&joined)));
    }
}
