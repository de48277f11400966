"""Serves the tiny model with the real llama.cpp server on a free loopback port, until standard input ends.

Prints `listening ADDRESS` once it answers. Whoever starts it keeps the other end of its standard input: when that process is
gone, however it went, so is the server.

Usage: serve.py
"""

from __future__ import annotations

import os
import sys
import tempfile

import xllamacpp

import tiny_model


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        model = os.path.join(directory, "tiny.gguf")
        tiny_model.main(model)
        params = xllamacpp.CommonParams()
        params.model.path = model
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.n_ctx = tiny_model.WINDOW
        params.n_parallel = 2
        params.use_jinja = True
        params.cpuparams.n_threads = 1
        params.warmup = False
        params.sampling.seed = 7
        server = xllamacpp.Server(params)
        print("listening", server.listening_address, flush=True)
        sys.stdin.read()
    # The server's own threads are not asked: nothing of it outlives the process.
    os._exit(0)


if __name__ == "__main__":
    main()
