"""Holds the fixtures to the vendors' own client libraries: what their types do not know, nobody documented.

Requests have to be made of fields that the types name, answers have to be what the types read, and every reason to stop that a
type names has to have its row. Fixtures that are odd on purpose are named below. Prints one line per finding.
"""

import json
import sys
from pathlib import Path
from typing import get_args

import anthropic.types as claude
import ollama._types as ollama
from anthropic.types import message_create_params
from google.genai import types as gemini
from pydantic import BaseModel, ConfigDict, TypeAdapter

HERE = Path(__file__).parent / "fixtures"
STRICT = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
# Streams with kinds that nobody documented, or as other servers than the vendor's write them.
ODD = {"unknown_kinds.sse", "answer_among_words.sse", "calls_without_ids.ndjson"}
# Named in the REST reference, though not in the client library of today.
ONLY_IN_REST = {"MISSING_THOUGHT_SIGNATURE", "FINISH_REASON_UNSPECIFIED"}
INVENTED = {"SOMETHING_NEW", "something_new"}

findings = []


def check(where, kind, value):
    try:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            kind.model_validate(value)
        else:
            kind.validate_python(value)
    except Exception as error:  # every way to fail is a finding
        findings.append(f"{where}: {' '.join(str(error).split())[:400]}")


def strict(kind):
    kind.__pydantic_config__ = STRICT
    return TypeAdapter(kind)


def each(folder, ending):
    files = sorted((HERE / folder).glob(f"*{ending}"))
    if len(files) < 3:
        findings.append(f"{folder}: too few fixtures")
    return [file for file in files if file.name not in ODD]


def anthropic_fixtures():
    event = TypeAdapter(claude.RawMessageStreamEvent)
    for file in each("anthropic/answers", ".sse"):
        for block in filter(str.strip, file.read_text().split("\n\n")):
            data = json.loads(block.split("data: ", 1)[1])
            # The client library reads these two by itself.
            if data["type"] not in ("ping", "error"):
                check(file.name, event, data)
    blocks = {
        "text": strict(claude.TextBlockParam),
        "image": strict(claude.ImageBlockParam),
        "document": strict(claude.DocumentBlockParam),
        "thinking": strict(claude.ThinkingBlockParam),
        "redacted_thinking": strict(claude.RedactedThinkingBlockParam),
        "tool_use": strict(claude.ToolUseBlockParam),
        "tool_result": strict(claude.ToolResultBlockParam),
    }
    tool, message = strict(claude.ToolParam), strict(claude.MessageParam)
    for part in (claude.OutputConfigParam, claude.ThinkingConfigAdaptiveParam, claude.ThinkingConfigEnabledParam):
        strict(part)
    for choice in ("Any", "Auto", "None", "Tool"):
        strict(getattr(claude, f"ToolChoice{choice}Param"))
    request = strict(message_create_params.MessageCreateParamsStreaming)
    for file in each("anthropic/requests", ".json"):
        body = json.loads(file.read_text())["body"]
        check(file.name, request, body)
        # Lists are read lazily by the types, so their contents are checked one by one.
        for entry in body.get("tools", []):
            check(file.name, tool, entry)
        for said in body["messages"]:
            check(file.name, message, said)
        for block in [*body.get("system", []), *(block for said in body["messages"] for block in said["content"])]:
            check(file.name, blocks[block["type"]], block)
            for inner in block.get("content", []):
                check(file.name, blocks[inner["type"]], inner)
    check("models.json", claude.ModelInfo, json.loads((HERE / "anthropic/models.json").read_text())["data"][0])
    reasons("anthropic", set(get_args(claude.StopReason)))


def gemini_fixtures():
    for file in each("gemini/answers", ".sse"):
        for block in filter(str.strip, file.read_bytes().decode().split("\r\n\r\n")):
            data = json.loads(block.removeprefix("data: "))
            if "error" not in data:
                check(file.name, gemini.GenerateContentResponse, data)
    kinds = {
        "systemInstruction": gemini.Content,
        "toolConfig": gemini.ToolConfig,
        "generationConfig": gemini.GenerationConfig,
    }
    for file in each("gemini/requests", ".json"):
        body = json.loads(file.read_text())["body"]
        for content in body.pop("contents"):
            check(file.name, gemini.Content, content)
        for tool in body.pop("tools", []):
            check(file.name, gemini.Tool, tool)
        for name, value in body.items():
            check(file.name, kinds[name], value)
    reasons("gemini", {reason.value for reason in gemini.FinishReason} | ONLY_IN_REST)


def ollama_fixtures():
    for file in each("ollama/answers", ".ndjson"):
        for line in file.read_text().splitlines():
            data = json.loads(line)
            if "error" not in data:
                check(file.name, ollama.ChatResponse, data)
    for file in each("ollama/requests", ".json"):
        check(file.name, ollama.ChatRequest, json.loads(file.read_text())["body"])
    check("tags.json", ollama.ListResponse, json.loads((HERE / "ollama/tags.json").read_text()))
    check("show.json", ollama.ShowResponse, json.loads((HERE / "ollama/show.json").read_text()))


def reasons(vendor, documented):
    known = set(json.loads((HERE / vendor / "stop_reasons.json").read_text()))
    for missing in sorted(documented - known):
        findings.append(f"{vendor}: no row for the reason to stop `{missing}`")
    for extra in sorted(known - documented - INVENTED):
        findings.append(f"{vendor}: nobody documents the reason to stop `{extra}`")


anthropic_fixtures()
gemini_fixtures()
ollama_fixtures()
print("\n".join(findings))
sys.exit(bool(findings))
