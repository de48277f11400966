"""A gRPC client that knows nothing of Palyra but an address: everything else it learns by reflection.

Does what it is told on the command line and prints what it saw as one JSON document; judging that is the work of whoever
started it. Usage: grpc_client.py ADDRESS COMMAND [ARGUMENT]…, with the bearer token in PALYRA_TOKEN, if there is one.
"""

from __future__ import annotations

import json
import os
import queue
import sys
from typing import Any, Iterator

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_status import rpc_status

GATEWAY = "palyra.gateway.v1.GatewayService"
PATIENCE = 30.0


class _Authorised(grpc.UnaryUnaryClientInterceptor, grpc.StreamStreamClientInterceptor):
    """Adds the token to every call, reflection included."""

    def __init__(self, token: str) -> None:
        self._metadata = [("authorization", f"Bearer {token}")]

    def _with_token(self, details: grpc.ClientCallDetails) -> grpc.ClientCallDetails:
        metadata = list(details.metadata or []) + self._metadata
        return details._replace(metadata=metadata)

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(self._with_token(details), request)

    def intercept_stream_stream(self, continuation: Any, details: Any, requests: Any) -> Any:
        return continuation(self._with_token(details), requests)


class Server:
    """A server, described by itself."""

    def __init__(self, address: str, token: str | None) -> None:
        plain = grpc.insecure_channel(address)
        self.channel = grpc.intercept_channel(plain, _Authorised(token)) if token else plain
        self.database = ProtoReflectionDescriptorDatabase(self.channel)
        self.pool = DescriptorPool(self.database)

    def services(self) -> list[str]:
        return sorted(self.database.get_services())

    def method(self, service: str, name: str) -> Any:
        return self.pool.FindServiceByName(service).FindMethodByName(name)

    def request(self, service: str, name: str, fields: dict[str, Any]) -> Any:
        message = GetMessageClass(self.method(service, name).input_type)()
        return json_format.ParseDict(fields, message, descriptor_pool=self.pool)

    def _callable(self, service: str, name: str) -> Any:
        method = self.method(service, name)
        output = GetMessageClass(method.output_type)
        maker = self.channel.stream_stream if method.client_streaming else self.channel.unary_unary
        return maker(
            f"/{service}/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=output.FromString,
        )

    def call(self, service: str, name: str, fields: dict[str, Any], timeout: float = PATIENCE) -> dict[str, Any]:
        request = self.request(service, name, fields)
        return self.as_dict(self._callable(service, name)(request, timeout=timeout))

    def stream(self, service: str, name: str, requests: Iterator[Any], timeout: float = PATIENCE) -> Any:
        return self._callable(service, name)(requests, timeout=timeout)

    def as_dict(self, message: Any) -> dict[str, Any]:
        return json_format.MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=self.pool)

    def refusal(self, error: grpc.RpcError) -> dict[str, Any]:
        """Everything that a refused call says."""
        seen: dict[str, Any] = {"code": error.code().name, "message": error.details()}
        status = rpc_status.from_call(error)
        for detail in status.details if status else []:
            if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
                info = error_details_pb2.ErrorInfo()
                detail.Unpack(info)
                seen["info"] = json_format.MessageToDict(info)
            elif detail.TypeName() == "palyra.common.v1.StableErrorEnvelope":
                envelope = GetMessageClass(self.pool.FindMessageTypeByName(detail.TypeName()))()
                envelope.ParseFromString(detail.value)
                seen["envelope"] = self.as_dict(envelope)
        return seen


class Upward:
    """The messages up a stream, given one by one while it is read."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def send(self, **fields: Any) -> None:
        self._waiting.put(self._server.request(GATEWAY, "RunStream", fields))

    def close(self) -> None:
        self._waiting.put(None)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._waiting.get, None)


def run(server: Server, prompt: str, workspace: str, answer: str) -> dict[str, Any]:
    """Starts a run, answers every question in the same way, and reads to the end."""
    upward = Upward(server)
    upward.send(start={"run": {"prompt": prompt, "workspace": workspace}})
    events, receipts = [], []
    for message in server.stream(GATEWAY, "RunStream", iter(upward)):
        seen = server.as_dict(message)
        if "receipt" in seen:
            receipts.append(seen["receipt"])
            continue
        events.append(seen["event"])
        asked = seen["event"].get("tool_approval_request")
        if asked:
            decision = f"APPROVAL_DECISION_{answer.upper()}"
            question = asked["approval_id"]
            upward.send(approval={"approval_id": question, "decision": decision, "scope": "APPROVAL_SCOPE_ONCE"})
    upward.close()
    return {"events": events, "receipts": receipts}


def resume(server: Server, run_id: str, from_seq: str) -> dict[str, Any]:
    """Reads a run again from a position."""
    upward = Upward(server)
    upward.send(resume={"run_id": run_id, "from_seq": from_seq})
    seen = [server.as_dict(message) for message in server.stream(GATEWAY, "RunStream", iter(upward))]
    upward.close()
    return {"events": [message["event"] for message in seen if "event" in message]}


def give_up(server: Server, prompt: str, workspace: str, seconds: str) -> dict[str, Any]:
    """Starts a run and lets the deadline pass in the middle of it."""
    upward = Upward(server)
    upward.send(start={"run": {"prompt": prompt, "workspace": workspace}})
    events = []
    try:
        for message in server.stream(GATEWAY, "RunStream", iter(upward), timeout=float(seconds)):
            events.append(server.as_dict(message).get("event"))
    except grpc.RpcError as error:
        return {"events": [event for event in events if event], "refusal": server.refusal(error)}
    finally:
        upward.close()
    return {"events": events}


def call(server: Server, name: str, fields: str) -> dict[str, Any]:
    """Calls any unary method, named `service/method`."""
    service, method = name.split("/")
    try:
        return {"answer": server.call(service, method, json.loads(fields))}
    except grpc.RpcError as error:
        return {"refusal": server.refusal(error)}


def services(server: Server) -> dict[str, Any]:
    """Lists what the server says it has."""
    try:
        return {"services": server.services()}
    except grpc.RpcError as error:
        return {"refusal": {"code": error.code().name, "message": error.details()}}


def health(server: Server) -> dict[str, Any]:
    """Asks the standard health service, without reflection: it is open to callers that may ask nothing else."""
    check = server.channel.unary_unary("/grpc.health.v1.Health/Check")
    # The answer's only field is its status, number 1; 1 means serving.
    return {"answer": list(check(b"", timeout=PATIENCE))}


COMMANDS = {"run": run, "resume": resume, "give-up": give_up, "call": call, "services": services, "health": health}


def main() -> None:
    address, command, *arguments = sys.argv[1:]
    server = Server(address, os.environ.get("PALYRA_TOKEN"))
    json.dump(COMMANDS[command](server, *arguments), sys.stdout)


if __name__ == "__main__":
    main()
