// Counts words. The line in the log holds numbers only, never the text.
import { write } from 'palyra:host/log@1.0.0';

import { tools } from './tools.js';

const failure = (tag, why) => ({ tag, val: why });

function count({ text, top = 3 }) {
  // The engine has no tables of Unicode properties, so words are what stands between spaces and punctuation.
  const words = text.toLowerCase().split(/[\s.,;:!?"“”…()[\]{}]+/).filter((word) => word !== '');
  const times = new Map();
  for (const word of words) times.set(word, (times.get(word) ?? 0) + 1);
  const ranked = [...times].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
  write('info', `counted ${words.length} words`);
  return {
    characters: [...text].length,
    words: words.length,
    lines: text === '' ? 0 : text.split('\n').length,
    top: ranked.slice(0, top).map(([word, number]) => ({ word, times: number })),
  };
}

const handlers = { count };

export const tool = {
  describe: () => tools,
  call(id, input) {
    const handler = handlers[id];
    if (!handler) throw failure('invalid-input', `there is no tool \`${id}\``);
    try {
      return JSON.stringify(handler(JSON.parse(input)));
    } catch (error) {
      throw error.tag ? error : failure('failed', String(error));
    }
  },
};
