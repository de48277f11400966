"""OpenAI's own package against an address, as its users write it.

Does everything once and prints what it saw as one JSON document; judging that is the work of whoever started it. Usage:
openai_client.py BASE_URL, with the bearer token in PALYRA_TOKEN.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Callable

import openai
from openai import OpenAI

MODEL = "palyra"
PATIENCE = 30.0
WEATHER = "how is the weather?"
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": PARAMETERS}}
FUNCTION = {"type": "function", "name": "get_weather", "description": "The weather.", "parameters": PARAMETERS, "strict": True}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def weather(arguments: str) -> str:
    return f"fine in {json.loads(arguments)['city']}"


def chat(client: OpenAI) -> tuple[dict[str, Any], str]:
    messages: list[Any] = [{"role": "system", "content": "be kind"}, user("hello")]
    answer = client.chat.completions.create(model=MODEL, messages=messages, temperature=0.2, seed=7)
    choice = answer.choices[0]
    return {"content": choice.message.content, "finish_reason": choice.finish_reason}, choice.message.content or ""


def stream(client: OpenAI) -> dict[str, Any]:
    content, reasons, usage = "", [], False
    chunks = client.chat.completions.create(
        model=MODEL, messages=[user("again")], stream=True, stream_options={"include_usage": True}
    )
    for chunk in chunks:
        usage = usage or chunk.usage is not None
        for choice in chunk.choices:
            content += choice.delta.content or ""
            reasons += [choice.finish_reason] if choice.finish_reason else []
    return {"content": content, "finish_reasons": reasons, "usage": usage}


def tools(client: OpenAI) -> dict[str, Any]:
    messages: list[Any] = [user(WEATHER)]
    first = client.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL]).choices[0]
    calls = first.message.tool_calls or []
    messages.append(first.message)
    messages += [{"role": "tool", "tool_call_id": c.id, "content": weather(c.function.arguments)} for c in calls]
    second = client.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL])
    cities = [json.loads(call.function.arguments)["city"] for call in calls]
    return {"finish_reason": first.finish_reason, "cities": cities, "answer": second.choices[0].message.content}


def streamed_tools(client: OpenAI) -> dict[str, Any]:
    """The same through the helper that puts chunks together."""
    messages: list[Any] = [user(WEATHER)]
    with client.chat.completions.stream(model=MODEL, messages=messages, tools=[TOOL]) as events:
        for _ in events:
            pass
        first = events.get_final_completion().choices[0]
    calls = first.message.tool_calls or []
    messages.append({"role": "assistant", "content": first.message.content, "tool_calls": [c.to_dict() for c in calls]})
    messages += [{"role": "tool", "tool_call_id": c.id, "content": weather(c.function.arguments)} for c in calls]
    for call in messages[1]["tool_calls"]:
        call["function"].pop("parsed_arguments", None)
    with client.chat.completions.stream(model=MODEL, messages=messages, tools=[TOOL]) as events:
        for _ in events:
            pass
        second = events.get_final_completion()
    cities = [json.loads(call.function.arguments)["city"] for call in calls]
    return {"finish_reason": first.finish_reason, "cities": cities, "answer": second.choices[0].message.content}


def response(client: OpenAI) -> dict[str, Any]:
    first = client.responses.create(model=MODEL, input="hello", instructions="be kind")
    following = client.responses.create(model=MODEL, input="and then?", previous_response_id=first.id)
    again = client.responses.retrieve(first.id)
    return {"text": first.output_text, "next": following.output_text, "again": again.output_text, "status": again.status}


def response_stream(client: OpenAI) -> dict[str, Any]:
    text = ""
    with client.responses.stream(model=MODEL, input="hello") as events:
        for event in events:
            if event.type == "response.output_text.delta":
                text += event.delta
        final = events.get_final_response()
    return {"text": text, "final": final.output_text}


def response_tools(client: OpenAI) -> dict[str, Any]:
    first = client.responses.create(model=MODEL, input=WEATHER, tools=[FUNCTION])
    calls = [item for item in first.output if item.type == "function_call"]
    outputs: list[Any] = [
        {"type": "function_call_output", "call_id": call.call_id, "output": weather(call.arguments)} for call in calls
    ]
    second = client.responses.create(model=MODEL, input=outputs, previous_response_id=first.id, tools=[FUNCTION])
    return {"cities": [json.loads(call.arguments)["city"] for call in calls], "answer": second.output_text}


def refused(ask: Callable[[], Any]) -> dict[str, Any] | None:
    try:
        ask()
    except openai.APIStatusError as error:
        return {"kind": type(error).__name__, "code": error.code, "param": error.param}
    return None


def main() -> None:
    base_url, token = sys.argv[1], os.environ["PALYRA_TOKEN"]
    client = OpenAI(base_url=base_url, api_key=token, timeout=PATIENCE)
    stranger = OpenAI(base_url=base_url, api_key="sk-wrong", timeout=PATIENCE)
    seen: dict[str, Any] = {"models": [model.id for model in client.models.list()]}
    seen["chat"], answer = chat(client)
    seen["stream"] = stream(client)
    history: list[Any] = [user("hello"), {"role": "assistant", "content": answer}, user("go on")]
    seen["conversation"] = client.chat.completions.create(model=MODEL, messages=history).choices[0].message.content
    seen["tools"] = tools(client)
    seen["streamed_tools"] = streamed_tools(client)
    seen["response"] = response(client)
    seen["response_stream"] = response_stream(client)
    seen["response_tools"] = response_tools(client)
    hello: list[Any] = [user("hello")]
    seen["errors"] = {
        "wrong_token": refused(lambda: stranger.chat.completions.create(model=MODEL, messages=hello)),
        "unsupported": refused(lambda: client.chat.completions.create(model=MODEL, messages=hello, n=2)),
        "no_model": refused(lambda: client.chat.completions.create(model="gpt-4o", messages=hello)),
        "embeddings": refused(lambda: client.embeddings.create(model="e", input="x")),
    }
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
