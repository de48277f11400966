"""Writes a model of half a megabyte whose weights are noise, in the form that llama.cpp loads.

What it says means nothing; that is no matter where the question is how a server speaks. Two things make it useful: its
tokens are the bytes and the printable characters, so that every text can be said, and one dimension of the embedding is
constant, through which the marks of tool calls and of JSON are made likelier than the rest. A grammar then finds its way
to the end of a document or a call instead of wandering for ever.

Usage: tiny_model.py FILE WINDOW
"""

from __future__ import annotations

import sys

import gguf
import numpy

WIDTH, HEADS, LAYERS, HIDDEN = 64, 4, 2, 128
LIKELY = {
    "<tool_call>": 1.2,
    "<|im_end|>": 1.0,
    "</tool_call>": 0.4,
    '"': 1.0,
    "}": 0.7,
    "]": 0.7,
    "{": 0.6,
}
TEMPLATE = """\
{%- if tools -%}
<|im_start|>system
# Tools
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools>
For each function call return a json object within <tool_call></tool_call> tags:
<tool_call>{"name": <function-name>, "arguments": <args-json-object>}</tool_call><|im_end|>
{% endif -%}
{%- for message in messages -%}
{%- if message.role == "tool" -%}
<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% elif message.tool_calls -%}
<|im_start|>assistant
{{ message.content or "" }}
{%- for call in message.tool_calls -%}
<tool_call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</tool_call>
{%- endfor -%}<|im_end|>
{% else -%}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}
"""


def tokens() -> list[tuple[str, float, gguf.TokenType]]:
    """Texts with their scores and kinds; the last one ends an answer."""
    kinds = gguf.TokenType
    known = [("<unk>", 0.0, kinds.UNKNOWN), ("<s>", 0.0, kinds.CONTROL), ("</s>", 0.0, kinds.CONTROL)]
    known += [(f"<0x{byte:02X}>", 0.0, kinds.BYTE) for byte in range(256)]
    known += [(chr(code), -float(code), kinds.NORMAL) for code in range(33, 127)]
    known += [("\u2581", -1.0, kinds.NORMAL)]
    known += [(mark, 0.0, kinds.USER_DEFINED) for mark in ("<tool_call>", "</tool_call>")]
    known += [(mark, 0.0, kinds.CONTROL) for mark in ("<|im_start|>", "<|im_end|>")]
    return known


def describe(writer: gguf.GGUFWriter, known: list[tuple[str, float, gguf.TokenType]], window: int) -> None:
    writer.add_name("tiny-noise")
    writer.add_context_length(window)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(known))
    writer.add_file_type(0)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text for text, _, _ in known])
    writer.add_token_scores([score for _, score, _ in known])
    writer.add_token_types([int(kind) for _, _, kind in known])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(len(known) - 1)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)


def main(path: str, window: int) -> None:
    chance = numpy.random.default_rng(0)
    known = tokens()
    place = {text: index for index, (text, _, _) in enumerate(known)}

    def noise(*shape: int) -> numpy.ndarray:
        return (chance.standard_normal(shape) * 0.05).astype(numpy.float32)

    def ones() -> numpy.ndarray:
        return numpy.ones(WIDTH, numpy.float32)

    embedding, output = noise(len(known), WIDTH), noise(len(known), WIDTH)
    embedding[:, 0], output[:, 0] = 1.0, 0.0
    for text, weight in LIKELY.items():
        output[place[text], 0] = weight
    tensors = {"token_embd.weight": embedding, "output.weight": output, "output_norm.weight": ones()}
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        tensors[f"{block}.attn_norm.weight"] = ones()
        tensors[f"{block}.ffn_norm.weight"] = ones()
        for part in ("q", "k", "v", "output"):
            tensors[f"{block}.attn_{part}.weight"] = noise(WIDTH, WIDTH)
        tensors[f"{block}.ffn_gate.weight"] = noise(HIDDEN, WIDTH)
        tensors[f"{block}.ffn_up.weight"] = noise(HIDDEN, WIDTH)
        tensors[f"{block}.ffn_down.weight"] = noise(WIDTH, HIDDEN)

    writer = gguf.GGUFWriter(path, "llama")
    describe(writer, known, window)
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
