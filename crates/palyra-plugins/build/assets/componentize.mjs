// Makes a component of a JavaScript module, without anything of WASI.
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [library, source, wit, world, output] = process.argv.slice(2);
const { componentize } = await import(pathToFileURL(library));
const { component } = await componentize({
  sourcePath: resolve(source),
  witPath: resolve(wit),
  worldName: world,
  disableFeatures: ['stdio', 'random', 'clocks', 'http', 'fetch-event'],
});
await writeFile(output, component);
