//! Servers that fail in every way, on each vendor's wire: an answer ends right or with the class that fits.

use std::time::Duration;

use futures::StreamExt;
use palyra_models::testing::{Fault, Reply};
use palyra_models::{ModelErrorClass as Class, ModelEvent, Timeouts};
use serde_json::json;

use super::{Vendor, ask, request, text};

/// A provider that takes a short silence for a time-out.
async fn impatient(vendor: Vendor, reply: Reply, timeouts: Timeouts) -> palyra_models::ModelError {
    let server = vendor.server(vec![reply]);
    let mut options = vendor.options(&server);
    options.timeouts = timeouts;
    ask(vendor.provider(options).as_ref(), request(None)).await.1.unwrap()
}

#[tokio::test]
async fn statuses_without_a_word_are_understood() {
    let rows = [
        (401, Class::Auth),
        (402, Class::Quota),
        (403, Class::Permission),
        (404, Class::Permanent),
        (408, Class::Transient),
        (413, Class::ContextTooLong),
        (429, Class::RateLimit),
        (500, Class::Transient),
        (502, Class::Transient),
        (503, Class::Transient),
        (504, Class::Transient),
        (529, Class::Transient),
    ];
    for vendor in Vendor::ALL {
        for (status, class) in rows {
            let (server, provider) = vendor.pair(vec![Reply::raw("").with_status(status)]);
            let (events, error) = ask(provider.as_ref(), request(None)).await;
            let error = error.unwrap();
            assert_eq!((error.class, error.retry_after_ms), (class, None), "{vendor:?} {status}: {error}");
            assert!(events.is_empty());
            assert_eq!(server.requests().len(), 1, "{vendor:?} {status}: nobody tries again here");
        }
    }
}

#[tokio::test]
async fn waits_are_passed_on_whatever_the_clocks_say() {
    for vendor in Vendor::ALL {
        let refusal = || Reply::status(429, &json!({"error": {"message": "slow down"}}));
        let (_server, provider) = vendor.pair(vec![
            refusal().header("retry-after", "7"),
            // The server's clock is years off; what counts is how far apart its own two times are.
            refusal()
                .header("date", "Tue, 01 Jan 2019 00:00:00 GMT")
                .header("retry-after", "Tue, 01 Jan 2019 00:00:30 GMT"),
            refusal(),
        ]);
        for wait in [Some(7000), Some(30_000), None] {
            let error = ask(provider.as_ref(), request(None)).await.1.unwrap();
            assert_eq!((error.class, error.retry_after_ms), (Class::RateLimit, wait), "{vendor:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_is_never_whole() {
    for vendor in Vendor::ALL {
        let whole = vendor.good_answer();
        // From the first byte to the last ones before the reason to stop.
        let stop = ["stop_reason\":\"", "finishReason", "done_reason"]
            .iter()
            .filter_map(|mark| whole.windows(mark.len()).rposition(|window| window == mark.as_bytes()))
            .max()
            .unwrap();
        for at in [0, 1, stop / 3, stop / 2, stop] {
            let (_server, provider) = vendor.pair(vec![Reply::raw(whole.clone()).fault(Fault::CloseAfter(at))]);
            let error = ask(provider.as_ref(), request(None)).await.1.unwrap();
            assert_eq!(error.class, Class::Network, "{vendor:?} reset at {at}: {error}");
        }
        // The same without the help of chunk sizes: the body simply ends, between two events or within one.
        let events = whole.split_inclusive(|byte| *byte == b'\n').collect::<Vec<_>>();
        let line = events.iter().position(|line| line.len() > 1).unwrap();
        let between = events[..=line + 1].concat();
        let (_server, provider) = vendor.pair(vec![Reply::raw(between)]);
        let error = ask(provider.as_ref(), request(None)).await.1.unwrap();
        assert_eq!(error.class, Class::Network, "{vendor:?}: {error}");
        let (_server, provider) = vendor.pair(vec![Reply::raw(whole[..stop].to_vec())]);
        let error = ask(provider.as_ref(), request(None)).await.1.unwrap();
        assert_eq!(error.class, Class::Malformed, "{vendor:?}: {error}");
    }
}

#[tokio::test]
async fn nonsense_is_told_apart() {
    let big = "x".repeat(9 * 1024 * 1024);
    for vendor in Vendor::ALL {
        let start = if vendor == Vendor::Ollama { "" } else { "data: " };
        let rows = [
            ("a web page", b"<html>hello</html>".to_vec(), Class::Permanent),
            ("plain words", b"hello there".to_vec(), Class::Permanent),
            ("broken JSON", format!("{start}{{\"type\": \"mess\n\n").into_bytes(), Class::Malformed),
            ("other JSON", format!("{start}{{\"x\": 1}}\n\n").into_bytes(), Class::Malformed),
            ("no UTF-8", [format!("{start}{{\"type\": \"").as_bytes(), b"\xff\xfe\"}\n\n"].concat(), Class::Malformed),
            ("a huge event", format!("{start}{{\"type\": \"{big}\"}}\n\n").into_bytes(), Class::Malformed),
            ("nothing", Vec::new(), Class::Network),
        ];
        for (name, bytes, class) in rows {
            let (_server, provider) = vendor.pair(vec![Reply::raw(bytes)]);
            let (events, error) = ask(provider.as_ref(), request(None)).await;
            let error = error.unwrap_or_else(|| panic!("{vendor:?} {name}: {events:?}"));
            assert_eq!(error.class, class, "{vendor:?} {name}: {error}");
            assert!(class != Class::Permanent || error.message.contains("check the base URL"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_wrong_content_type_is_no_matter() {
    for vendor in Vendor::ALL {
        let reply = Reply::raw(vendor.good_answer()).content_type("text/html; charset=latin1");
        let (_server, provider) = vendor.pair(vec![reply]);
        let (events, error) = ask(provider.as_ref(), request(None)).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(text(&events), "Hello, world!");
    }
}

#[tokio::test]
async fn a_large_chunk_is_taken() {
    let words = "word ".repeat(500_000);
    for vendor in Vendor::ALL {
        let whole = String::from_utf8(vendor.good_answer()).unwrap().replace("Hello, ", &words);
        let (_server, provider) = vendor.pair(vec![Reply::raw(whole)]);
        let (events, error) = ask(provider.as_ref(), request(None)).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(text(&events), format!("{words}world!"));
    }
}

#[tokio::test]
async fn every_phase_has_its_own_clock() {
    let patient = Timeouts::default();
    let short = Duration::from_millis(200);
    for vendor in Vendor::ALL {
        let whole = vendor.good_answer();
        let first = Timeouts { connect: short, first_byte: short, ..patient };
        let error = impatient(vendor, Reply::raw(whole.clone()).delay(Duration::from_millis(1500)), first).await;
        assert_eq!(error.class, Class::Timeout, "{vendor:?}: {error}");
        let between = Timeouts { between_chunks: short, ..patient };
        let silent = Reply::raw(whole.clone()).fault(Fault::SilentAfter(whole.len() / 2));
        let error = impatient(vendor, silent.clone(), between).await;
        assert_eq!(error.class, Class::Timeout, "{vendor:?}: {error}");
        let total = Timeouts { total: Duration::from_millis(800), ..patient };
        let error = impatient(vendor, silent, total).await;
        assert_eq!(error.class, Class::Timeout, "{vendor:?}: {error}");
    }
}

#[tokio::test]
async fn dropping_the_stream_hangs_up() {
    for vendor in Vendor::ALL {
        let whole = vendor.good_answer();
        let world = whole.windows(5).position(|window| window == b"world").unwrap();
        let (server, provider) = vendor.pair(vec![Reply::raw(whole).fault(Fault::SilentAfter(world))]);
        let mut stream = provider.stream(request(None)).await.unwrap();
        while !matches!(stream.next().await.unwrap().unwrap(), ModelEvent::TextDelta(_)) {}
        drop(stream);
        let gone = tokio::task::spawn_blocking(move || {
            // The server notices by itself; the bound only keeps a defect from hanging the test.
            (0..500).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                server.abandoned() == 1
            })
        });
        assert!(gone.await.unwrap(), "{vendor:?}");
        drop(provider);
    }
}

#[tokio::test]
async fn redirects_are_not_followed_and_nobody_there_is_told() {
    for vendor in Vendor::ALL {
        let reply = Reply::status(307, &json!({})).header("location", "http://elsewhere.example/?k=v");
        let (server, provider) = vendor.pair(vec![reply]);
        let error = ask(provider.as_ref(), request(None)).await.1.unwrap();
        assert_eq!(error.class, Class::Permanent, "{error}");
        assert!(error.message.contains("elsewhere.example") && !error.message.contains("k=v"), "{error}");
        drop(server);
        let error = ask(provider.as_ref(), request(None)).await.1.unwrap();
        assert_eq!(error.class, Class::Network, "{vendor:?}: {error}");
        assert!(error.message.contains("cannot reach the model server at `http://127.0.0.1:"), "{error}");
    }
}

#[tokio::test]
async fn a_key_that_a_server_repeats_is_masked() {
    let rows = [
        (
            Vendor::Anthropic,
            "data: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"key sk-hunter2 died\"}}\n\n",
        ),
        (
            Vendor::Gemini,
            "data: {\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\",\"message\":\"key sk-hunter2 died\"}}\n\n",
        ),
        (Vendor::Ollama, "{\"error\":\"key sk-hunter2 died\"}\n"),
    ];
    for (vendor, body) in rows {
        let (_server, provider) = vendor.pair(vec![Reply::raw(body)]);
        let error = ask(provider.as_ref(), request(None)).await.1.unwrap();
        assert_eq!(error.class, Class::Transient, "{vendor:?}: {error}");
        assert!(!error.message.contains("hunter2"), "{error}");
        assert!(!format!("{:?}", vendor.options(&vendor.server(Vec::new()))).contains("hunter2"));
    }
}
