// The typed client of the daemon's HTTP API. Paths, parameters and answers are those of `schema.ts`, which is generated from the
// description that the daemon serves; a change of the API that breaks the console does not compile.

import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "./schema";

export type Api = Client<paths>;
export type ErrorEnvelope = components["schemas"]["StableErrorEnvelope"];
export type RunStreamEvent = components["schemas"]["RunStreamEvent"];

/** A client that shows an API token. */
export function connect(baseUrl: string, token: string): Api {
  return createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
}

/** Follows a run's events without a gap, over as many connections as it takes; ends with the run. */
export async function* follow(baseUrl: string, token: string, runId: string, after = 0): AsyncGenerator<RunStreamEvent> {
  let seen = after;
  for (;;) {
    const url = `${baseUrl}/api/v1/runs/${runId}/tape?follow=true&from_seq=${seen + 1}`;
    const response = await fetch(url, { headers: { Authorization: `Bearer ${token}` } });
    if (!response.ok || response.body === null) {
      throw new Error(`the tape cannot be read: ${response.status}`);
    }
    let ended = false;
    for await (const line of lines(response.body)) {
      const event = JSON.parse(line) as RunStreamEvent & { error?: ErrorEnvelope };
      if (event.error !== undefined) {
        break;
      }
      if (event.seq > seen) {
        seen = event.seq;
        yield event;
      }
      ended = isLast(event);
    }
    if (ended) {
      return;
    }
  }
}

function isLast(event: RunStreamEvent): boolean {
  const over = ["completed", "failed", "aborted", "expired"];
  return "status" in event && over.includes((event.status as { phase: string }).phase);
}

async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    const parts = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    yield* parts.filter((line) => line !== "");
  }
}
