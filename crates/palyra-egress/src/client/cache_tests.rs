use super::*;

fn answer(status: u16, headers: &[(&str, &str)]) -> FetchResponse {
    FetchResponse {
        status,
        url: "https://a.example/".into(),
        redirects: Vec::new(),
        headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        body: Bytes::from_static(b"body"),
        served: Served::Network,
        address: None,
    }
}

#[test]
fn what_may_be_kept_and_for_how_long() {
    for (status, headers, fresh) in [
        (200, &[("cache-control", "max-age=60")][..], Some(60)),
        (200, &[("cache-control", "public, max-age=60, s-maxage=10")], Some(10)),
        (200, &[("cache-control", "max-age=60"), ("age", "50")], Some(10)),
        (200, &[("cache-control", "max-age=99999999")], Some(86_400)),
        (200, &[("etag", "\"1\"")], Some(0)),
        (200, &[("last-modified", "yesterday")], Some(0)),
        (200, &[("cache-control", "no-cache, max-age=60"), ("etag", "\"1\"")], Some(0)),
        (200, &[("cache-control", "no-store"), ("etag", "\"1\"")], None),
        (200, &[("cache-control", "private, max-age=60")], None),
        (200, &[("cache-control", "max-age=60"), ("vary", "Cookie")], None),
        (200, &[("cache-control", "max-age=60"), ("vary", "Accept-Encoding")], Some(60)),
        (200, &[("cache-control", "max-age=60"), ("set-cookie", "a=b")], None),
        (200, &[], None),
        (404, &[("cache-control", "max-age=60")], None),
        (206, &[("cache-control", "max-age=60")], None),
    ] {
        let kept = match CachedAnswer::judge(&answer(status, headers), Timestamp(0)) {
            Storable::Yes(kept) => Some(kept.fresh_until.0 / 1000),
            Storable::No => None,
        };
        assert_eq!(kept, fresh, "{status} {headers:?}");
    }
}

#[tokio::test]
async fn the_store_stays_small_and_forgets_the_longest_unused() {
    let cache = MemoryCache::default();
    let Storable::Yes(kept) = CachedAnswer::judge(&answer(200, &[("etag", "1")]), Timestamp(0)) else { panic!() };
    for n in 0..ENTRY_LIMIT {
        cache.put(&n.to_string(), kept.clone()).await;
    }
    assert!(cache.get("0").await.is_some());
    cache.put("new", kept.clone()).await;
    assert!(cache.get("0").await.is_some(), "it was used");
    assert!(cache.get("1").await.is_none(), "it was not");
    let mut large = kept.clone();
    large.body = vec![0; 7 << 20].into();
    for n in 0..10 {
        cache.put(&format!("large {n}"), large.clone()).await;
    }
    assert!(cache.0.lock().unwrap().bytes <= BYTE_LIMIT);
    large.body = vec![0; BYTE_LIMIT].into();
    cache.put("huge", large).await;
    assert!(cache.get("huge").await.is_none());
    cache.remove("new").await;
    assert!(cache.get("new").await.is_none());
}
