use super::*;

const LIMITS: ConnectionLimits = ConnectionLimits {
    open: 4,
    unauthenticated: 3,
    per_source: 3,
    unauthenticated_per_source: 2,
    per_principal: 3,
    idle: Duration::from_secs(300),
};

fn principal(name: &str) -> PrincipalId {
    format!("user:{name}").parse().unwrap()
}

fn remote(last: u8) -> Origin {
    Origin::of_address([192, 0, 2, last].into(), &[])
}

fn is_evicted(connection: &Connection) -> bool {
    connection.0.facts.evicted.is_cancelled()
}

/// Longer than the table's clock can tell apart.
fn later() {
    std::thread::sleep(Duration::from_millis(3));
}

#[test]
fn the_stranger_who_was_idle_longest_gives_way() {
    let table = Connections::new(LIMITS);
    let mut strangers = Vec::new();
    for _ in 0..3 {
        strangers.push(table.admit(Origin::Shared).unwrap());
        later();
    }
    // The first one asked something just now, the second one is being answered.
    drop(strangers[0].request());
    let _answering = strangers[1].request();
    later();
    let _next = table.admit(Origin::Shared).unwrap();
    assert_eq!(strangers.iter().map(is_evicted).collect::<Vec<_>>(), [false, false, true]);
    let _another = table.admit(Origin::Shared).unwrap();
    assert_eq!(strangers.iter().map(is_evicted).collect::<Vec<_>>(), [true, false, true]);
}

#[test]
fn an_authenticated_connection_outlasts_every_stranger() {
    let table = Connections::new(LIMITS);
    let owner = table.admit(Origin::Shared).unwrap();
    owner.authenticated(&principal("owner")).unwrap();
    later();
    let crowd: Vec<_> = (0..50).map(|_| table.admit(Origin::Shared).unwrap()).collect();
    assert!(!is_evicted(&owner));
    assert_eq!(crowd.iter().filter(|stranger| !is_evicted(stranger)).count(), LIMITS.unauthenticated);
}

#[test]
fn full_of_busy_callers_means_refused_and_an_idle_one_gives_way() {
    let table = Connections::new(LIMITS);
    let callers: Vec<_> = (0..4).map(|_| table.admit(Origin::Trusted).unwrap()).collect();
    let mut requests: Vec<_> = callers.iter().map(Connection::request).collect();
    assert!(table.admit(Origin::Trusted).is_none());
    requests.pop();
    assert!(table.admit(Origin::Trusted).is_some());
    assert!(is_evicted(&callers[3]));
}

#[test]
fn one_address_takes_its_share_and_no_more() {
    let table = Connections::new(LIMITS);
    let other = table.admit(remote(1)).unwrap();
    let crowd: Vec<_> = (0..10).map(|_| table.admit(remote(2)).unwrap()).collect();
    assert!(!is_evicted(&other));
    assert_eq!(crowd.iter().filter(|one| !is_evicted(one)).count(), LIMITS.unauthenticated_per_source);
    // Proxies and this machine itself stand for many.
    assert_eq!(Origin::of_address([127, 0, 0, 1].into(), &[]), Origin::Shared);
    assert_eq!(Origin::of_address([192, 0, 2, 9].into(), &[[192, 0, 2, 9].into()]), Origin::Shared);
}

#[test]
fn one_principal_takes_a_share_and_leaves_the_rest_to_others_from_the_same_address() {
    let table = Connections::new(LIMITS);
    let (greedy, modest) = (principal("greedy"), principal("modest"));
    let theirs: Vec<_> = (0..3).map(|_| table.admit(Origin::Shared).unwrap()).collect();
    let mut requests: Vec<_> = theirs.iter().map(Connection::request).collect();
    theirs.iter().for_each(|one| one.authenticated(&greedy).unwrap());
    // The same connection again is no further one.
    theirs[0].authenticated(&greedy).unwrap();
    let next = table.admit(Origin::Shared).unwrap();
    assert_eq!(next.authenticated(&greedy), Err(TooManyConnections { most: 3 }));
    next.authenticated(&modest).unwrap();
    assert!(!theirs.iter().any(is_evicted) && !is_evicted(&next));
    // An idle connection of their own gives way to a new one.
    requests.pop();
    next.authenticated(&greedy).unwrap();
    assert_eq!(theirs.iter().map(is_evicted).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn slots_come_back_and_idleness_is_counted_from_the_last_answer() {
    let table = Connections::new(LIMITS);
    let stranger = table.admit(Origin::Shared).unwrap();
    let accepted = stranger.idle_deadline();
    later();
    let request = stranger.request();
    assert!(stranger.is_busy());
    drop(request);
    let answered = stranger.idle_deadline();
    assert!(!stranger.is_busy() && answered > accepted);
    stranger.authenticated(&principal("known")).unwrap();
    assert_eq!(stranger.idle_deadline(), answered + LIMITS.idle - BRIEF_IDLE);
    drop(stranger.request_by(Version::HTTP_11));
    assert!(stranger.idle_deadline() < Instant::now() + LIMITS.idle, "HTTP/1 says nothing between requests");
    stranger.request().upgraded();
    assert!(stranger.is_busy());
    drop(stranger);
    let entries = table.0.lock();
    assert!(entries.authenticated.is_empty() && entries.unauthenticated.is_empty() && entries.closing == 0);
}
