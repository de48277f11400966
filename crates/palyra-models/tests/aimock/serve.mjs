// Serves the vendors' wires with aimock, which nobody here wrote, on a free loopback port until standard input ends.
//
// Prints `listening ADDRESS` once it answers. Whoever starts it keeps the other end of its standard input: when that process is
// gone, however it went, so is the server.
//
// What is said is decided here by the person's words; how it is spelled on each wire is aimock's business. Calls are made to the
// tools that a request offers, by the names that it gives them, and what tools gave is said back: so the tests see whether
// names, ids and results arrived as the server reads them.
//
// Usage: node serve.mjs PACKAGES     with the directory that scripts/clients/setup.sh printed

import { createRequire } from "node:module";

const { LLMock } = createRequire(`${process.argv[2]}/`)("@copilotkit/aimock");

// Strict: a request that a vendor would refuse is refused, and so is one that nothing here answers.
const mock = new LLMock({ port: 0, host: "127.0.0.1", strict: true, chunkSize: 5, auth: { apiKeys: ["sk-outside"] } });

// Each vendor reads its own names out of one table.
const usage = {
  prompt_tokens: 1234,
  completion_tokens: 56,
  input_tokens: 1234,
  output_tokens: 56,
  promptTokenCount: 1234,
  candidatesTokenCount: 56,
};

const tool = (request, index) => request.tools[index].function.name;
const results = (request) =>
  request.messages
    .filter((message) => message.role === "tool")
    .map((message) => `${message.tool_call_id} gave ${text(message.content)}`)
    .join("; ");
const text = (content) =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("");

mock.onMessage("say hello", { content: "Hello from outside: grüße, 世界 🌍.", usage });

mock.on({ userMessage: "call one", hasToolResult: true }, (request) => ({ content: results(request) }));
mock.onMessage("call one", (request) => ({
  toolCalls: [{ id: "call_one", name: tool(request, 0), arguments: '{"zone":"utc \\"now\\" ü"}' }],
}));

mock.on({ userMessage: "call several", hasToolResult: true }, (request) => ({ content: results(request) }));
mock.onMessage("call several", (request) => ({
  content: "I look at both.",
  toolCalls: [
    { id: "call_a", name: tool(request, 0), arguments: '{"zone":"utc"}' },
    { id: "call_b", name: tool(request, 1), arguments: '{"path":"a.txt"}' },
    { id: "call_c", name: tool(request, 1), arguments: '{"path":"b.txt"}' },
  ],
}));

// A thought before a call, and the turn after it: strict mode wants the thought back, signed, before the call that followed it.
mock.on({ userMessage: "think", hasToolResult: true }, (request) => ({ content: results(request) }));
mock.onMessage("think", (request) => ({
  content: "So be it.",
  reasoning: "First this, then that.",
  toolCalls: [{ id: "call_thought", name: tool(request, 0), arguments: '{"zone":"utc"}' }],
}));

mock.onMessage("count the cache", {
  content: "counted",
  usage: { ...usage, prompt_tokens_details: { cached_tokens: 1000 }, completion_tokens_details: { reasoning_tokens: 40 } },
});
mock.onMessage("too short a bound", { content: "this is cut o", finishReason: "length" });
mock.onMessage("give a document", { content: '{"verdict":"yes"}' });

const refuse = (words, status, error, more) => mock.onMessage(words, { status, error, ...more });
refuse("too many calls", 429, { message: "slow down", type: "rate_limit_error", code: "rate_limit_exceeded" }, { retryAfter: 7 });
refuse("no money left", 429, {
  message: "You exceeded your current quota, please check your plan and billing details.",
  type: "insufficient_quota",
  code: "insufficient_quota",
});
refuse("bad key", 401, { message: "invalid x-api-key", type: "authentication_error", code: "invalid_api_key" });
refuse("server fails", 500, { message: "something broke", type: "api_error" });
refuse("overloaded", 529, { message: "Overloaded", type: "overloaded_error" });
// Vendors word it each in their way.
refuse("long for openai", 400, {
  message: "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
  type: "invalid_request_error",
  param: "messages",
  code: "context_length_exceeded",
});
refuse("long for anthropic", 400, {
  message: "prompt is too long: 210000 tokens > 200000 maximum",
  type: "invalid_request_error",
});
refuse("long for gemini", 400, {
  message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
  type: "INVALID_ARGUMENT",
});
refuse("long for ollama", 400, { message: "the input length exceeds the context length", type: "invalid_request_error" });

const long = "one two three four five six seven eight nine ten";
// Slowly, so that what was written is on its way before the connection is gone.
const middle = { truncateAfterChunks: 4, latency: 20 };
mock.onMessage("hang up on words", { content: long }, middle);
mock.onMessage(
  "hang up on a call",
  (request) => ({ toolCalls: [{ id: "call_cut", name: tool(request, 0), arguments: `{"zone":"${long}"}` }] }),
  middle,
);
// So slowly that whoever reads it can end the server in the middle.
mock.onMessage("speak slowly", { content: `${long} `.repeat(20) }, { latency: 200 });
mock.onMessage("break the document", { content: "x" }, { chaos: { malformedRate: 1 } });
mock.onMessage("drop the call", { content: "x" }, { chaos: { dropRate: 1 } });
mock.onMessage("leave before a word", { content: "x" }, { chaos: { disconnectRate: 1 } });

await mock.start();
console.log("listening", mock.url);
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
