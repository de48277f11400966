//! Names that say themselves what they belong to, so that nothing has to be remembered: `call_<run>_<call>` for calls of the client's tools,
//! `resp_<run>_<position>` and `chatcmpl-<run>_<position>` for answers.

use palyra_common::RunId;

/// Characters of the id of a call within its run; ours are far shorter.
const MAX_CALL: usize = 32;

/// The name of a call for the client.
pub(super) fn call(run_id: RunId, call_id: &str) -> String {
    format!("call_{run_id}_{call_id}")
}

/// The run and the call that a name stands for.
pub(super) fn read_call(name: &str) -> Option<(RunId, String)> {
    let (run, call) = name.strip_prefix("call_")?.split_once('_')?;
    let plain = !call.is_empty() && call.len() <= MAX_CALL && call.bytes().all(|byte| byte.is_ascii_alphanumeric());
    Some((run.parse().ok()?, plain.then(|| call.to_owned())?))
}

/// The name of the call that an item `fc_<run>_<call>` is.
pub(super) fn read_call_item(name: &str) -> Option<String> {
    let (run_id, call_id) = read_call(&format!("call_{}", name.strip_prefix("fc_")?))?;
    Some(call(run_id, &call_id))
}

/// The name of a chat completion that begins at this position of its run's tape.
pub(super) fn completion(run_id: RunId, from_seq: u64) -> String {
    format!("chatcmpl-{run_id}_{from_seq}")
}

/// The name of a response that begins at this position of its run's tape.
pub(super) fn response(run_id: RunId, from_seq: u64) -> String {
    format!("resp_{run_id}_{from_seq}")
}

/// The run of a response.
pub(super) fn read_response(name: &str) -> Option<RunId> {
    read_response_place(name).map(|(run_id, _)| run_id)
}

/// The run of a response, and where on its tape it begins.
pub(super) fn read_response_place(name: &str) -> Option<(RunId, u64)> {
    place(name.strip_prefix("resp_")?)
}

/// The run of the message `msg_<run>_<position>`, and where on its tape the response begins that it belongs to.
pub(super) fn read_message_place(name: &str) -> Option<(RunId, u64)> {
    place(name.strip_prefix("msg_")?)
}

fn place(text: &str) -> Option<(RunId, u64)> {
    let (run, seq) = text.split_once('_')?;
    Some((run.parse().ok()?, seq.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_not() {
        let run = RunId::generate();
        assert_eq!(read_call(&call(run, "t1c3")), Some((run, "t1c3".to_owned())));
        assert_eq!(read_response(&response(run, 7)), Some(run));
        assert_eq!(read_call_item(&format!("fc_{run}_t1c3")), Some(call(run, "t1c3")));
        assert_eq!(read_message_place(&format!("msg_{run}_7")), Some((run, 7)));
        let other =
            [String::new(), "call_".into(), format!("call_{run}"), format!("call_{run}_"), format!("call_{run}_a b")];
        for name in other {
            assert_eq!(read_call(&name), None, "{name}");
        }
        for name in ["resp_", "resp_x_1", "resp_68af4030592c81938ec0a5fbab4a3e9f05438e46b5f69a3b"] {
            assert_eq!(read_response(name), None, "{name}");
        }
        assert!(call(run, "t128c128").len() <= 64, "OpenAI's own bound");
    }
}
