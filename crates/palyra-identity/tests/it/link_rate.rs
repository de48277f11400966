//! A link to a canvas spends an allowance of its own.

use std::num::NonZeroU32;
use std::sync::Arc;

use palyra_common::{Digest, PrincipalRole, SystemClock};
use palyra_identity::{Principal, PrincipalId, RateLimiter, RateOptions, Via};

#[test]
fn whoever_uses_a_link_does_not_spend_what_its_maker_has() {
    let options = RateOptions { per_minute: NonZeroU32::MIN, burst: NonZeroU32::new(2).unwrap(), max_principals: 16 };
    let limiter = RateLimiter::new(options, Arc::new(SystemClock));
    let maker = Principal::unix_socket(1, PrincipalRole::Operator);
    let link = |name: &[u8]| {
        let via = Via::CanvasLink { link: Digest::of(name), made_with: Box::new(maker.via.clone()) };
        Principal::new(PrincipalId::uid(1), PrincipalRole::Operator, via)
    };
    for _ in 0..2 {
        limiter.admit(&link(b"one")).unwrap();
    }
    assert!(limiter.admit(&link(b"one")).is_err(), "a link has a rate too");
    limiter.admit(&link(b"two")).unwrap();
    limiter.admit(&maker).unwrap();
}
