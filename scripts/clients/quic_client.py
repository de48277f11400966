"""A QUIC client that is not ours: aioquic, the frames of docs/transports.md and nothing else of Palyra.

Does what it is told on the command line and prints what it saw as one JSON document; judging that is the work of whoever
started it. Usage: quic_client.py HOST:PORT IDENTITY_DIRECTORY ALPN COMMAND [PARAMS], where the directory holds client.pem,
client.key and ca.pem, and PARAMS is a JSON record.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import ssl
import struct
import sys
import time
from pathlib import Path
from typing import Any

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted, QuicEvent

PATIENCE = 30.0
MORE = 1 << 31
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class Client(QuicConnectionProtocol):
    """Remembers how the handshake went and how the connection ended."""

    handshake: dict[str, Any] = {}
    ended: dict[str, Any] | None = None

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, HandshakeCompleted):
            self.handshake = {
                "alpn": event.alpn_protocol,
                "early_data": event.early_data_accepted,
                "resumed": event.session_resumed,
            }
        elif isinstance(event, ConnectionTerminated):
            self.ended = {"code": event.error_code, "reason": event.reason_phrase}
        super().quic_event_received(event)


def ulid() -> str:
    number = int(time.time() * 1000) << 80 | secrets.randbits(80)
    return "".join(CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


async def messages(reader: asyncio.StreamReader) -> list[Any]:
    """Every message of a stream, put together from its frames."""
    found, begun = [], b""
    while header := await reader.read(4):
        while len(header) < 4:
            header += await reader.readexactly(1)
        (length,) = struct.unpack(">I", header)
        begun += await reader.readexactly(length & ~MORE)
        if not length & MORE:
            found.append(json.loads(begun))
            begun = b""
    return found


async def ask(address: str, identity: Path, alpn: str, command: str, params: str = "{}") -> dict[str, Any]:
    host, port = address.rsplit(":", 1)
    configuration = QuicConfiguration(is_client=True, alpn_protocols=[alpn], server_name="localhost")
    configuration.verify_mode = ssl.CERT_REQUIRED
    configuration.load_verify_locations(cafile=str(identity / "ca.pem"))
    if (identity / "client.pem").exists():
        configuration.load_cert_chain(identity / "client.pem", identity / "client.key")
    seen: dict[str, Any] = {}
    try:
        async with connect(host, int(port), configuration=configuration, create_protocol=Client) as client:
            try:
                reader, writer = await client.create_stream()
                envelope = {"request_id": ulid(), "command": command, "params": json.loads(params)}
                text = json.dumps(envelope).encode()
                writer.write(struct.pack(">I", len(text)) + text)
                writer.write_eof()
                seen["messages"] = await asyncio.wait_for(messages(reader), PATIENCE)
            finally:
                seen["handshake"], seen["ended"] = client.handshake, client.ended
    except (ConnectionError, asyncio.TimeoutError, asyncio.IncompleteReadError) as error:
        seen["error"] = type(error).__name__
    return seen


def main() -> None:
    address, identity, *rest = sys.argv[1:]
    json.dump(asyncio.run(ask(address, Path(identity), *rest)), sys.stdout)


if __name__ == "__main__":
    main()
