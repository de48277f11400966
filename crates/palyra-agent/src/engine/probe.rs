//! What a run begins with, for trying a model before one is asked to do anything.

use palyra_common::{Digest, RunId, SessionId, ToStableError as _};
use palyra_models::{Message, ProbePrompt, ProviderInfo};

use super::tool_offer::ToolOffer;
use super::{Engine, request_size};
use crate::context;
use crate::prompt::SYSTEM;
use crate::session::LOCAL_USER;
use crate::spec::{MACHINE_VERSION, MAIN_AGENT, ModelChoice, RunSpec, ToolSelection};

/// What stands for the task when the size is counted.
const TASK: &str = "Hello.";
/// Smallest window that is recommended to anybody.
const SMALLEST_WINDOW: u64 = 4_096;

impl Engine {
    /// Instructions and tools of a model call: those that a run sends first, or every tool there is. What the model's window cannot hold is
    /// refused with the numbers, as it would be in a run.
    #[must_use]
    pub fn probe_prompt(&self, info: &ProviderInfo, tools: ToolSelection) -> ProbePrompt {
        let options = &self.shared.options;
        let mut spec = RunSpec {
            run_id: RunId::from_u128(0),
            session_id: SessionId::from_u128(0),
            machine_version: MACHINE_VERSION,
            owner: LOCAL_USER.to_owned(),
            agent: MAIN_AGENT.to_owned(),
            profile: None,
            mode: options.mode,
            frame_seed: Digest::of(b""),
            prompt: TASK.to_owned(),
            from: None,
            attachments: Vec::new(),
            workspace: String::new(),
            started_with: Default::default(),
            system: SYSTEM.to_owned(),
            project: Vec::new(),
            surroundings: None,
            history: Vec::new(),
            history_omitted: 0,
            tools,
            client_tools: Vec::new(),
            objective: None,
            limits: options.limits.clone(),
            model: ModelChoice::of(info.clone()),
            reserved_tokens: 0,
            idempotency: None,
        };
        let ToolOffer { tools, .. } = ToolOffer::to(options, &spec, &[]);
        // A language model is asked, so its window counts whatever it is told about.
        spec.tools = ToolSelection::Needed;
        let instructions = context::messages(&spec, &[]);
        let messages = [instructions.as_slice(), &[Message::user(TASK)]].concat();
        let too_long = request_size::excess(options, &spec, &messages, &tools).map(|excess| {
            let window = excess.needed().next_power_of_two().max(SMALLEST_WINDOW);
            let hint = format!(
                "give the model a window of {window} tokens (llama.cpp: `--ctx-size {window}`; Ollama: `OLLAMA_CONTEXT_LENGTH={window}`) or use \
                 another model; if its window is larger than {}, set `context_tokens` of the provider in models.toml",
                info.context_tokens
            );
            excess.error().to_stable().hint(hint)
        });
        let system = instructions.into_iter().next().map(|message| message.content);
        ProbePrompt { system, tools, too_long }
    }
}
