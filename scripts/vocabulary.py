#!/usr/bin/env python3
"""Packs a published byte-pair vocabulary into the form that palyra-models reads in place.

    scripts/vocabulary.py o200k_base.tiktoken crates/palyra-models/vocabularies/o200k_base.bin

The input is a text file with one token a line: base64 of its bytes, a space, its rank. The output groups the tokens by length: for each
length from 1 on a count (four bytes, little endian) in the head, which begins with the greatest length; then per length the sorted tokens
side by side, and after them their ranks, three bytes each. Nothing has to be unpacked to look a token up.
"""

import base64
import hashlib
import struct
import sys

# The files as the vendor publishes them; another file is another vocabulary.
KNOWN = {
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": "o200k_base",
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": "cl100k_base",
}


def main(source, target):
    with open(source, "rb") as file:
        text = file.read()
    digest = hashlib.sha256(text).hexdigest()
    if digest not in KNOWN:
        sys.exit(f"{source} is none of the known vocabularies (SHA-256 {digest})")
    by_length = {}
    for line in text.splitlines():
        token, rank = line.split()
        token = base64.b64decode(token)
        by_length.setdefault(len(token), []).append((token, int(rank)))
    longest = max(by_length)
    head = struct.pack("<I", longest)
    body = b""
    for length in range(1, longest + 1):
        group = sorted(by_length.get(length, []))
        head += struct.pack("<I", len(group))
        body += b"".join(token for token, _ in group)
        body += b"".join(struct.pack("<I", rank)[:3] for _, rank in group)
    with open(target, "wb") as file:
        file.write(head + body)
    print(f"{KNOWN[digest]}: {sum(map(len, by_length.values()))} tokens, {len(head + body)} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
