// SPDX-License-Identifier: Apache-2.0
// `node example.js ./baton.node [model]`: see baton_node.c.
'use strict';
const path = require('path');
const baton = require(path.resolve(process.argv[2]));

baton.registerFunc('js.myadd', (a, b) => a + b);
const myadd = baton.getGlobalFunc('js.myadd');
console.log('myadd(1, 2) =', myadd(1, 2));
console.log('myadd("a", "b") =', myadd('a', 'b'));
baton.registerFunc('js.same', (x) => x);
const same = baton.getGlobalFunc('js.same');
console.log('large:', same(9007199254740993n), same(0.5), same(true), same(null), same([1].length));
console.log('nothing of this name:', baton.getGlobalFunc('js.nobody'));

// A function is a value: it goes to Baton and comes back, and may be called from either side.
baton.registerFunc('js.callhello', (f) => f('hello world'));
baton.getGlobalFunc('js.callhello')((text) => console.log('callback:', text));
const names = baton.getGlobalFunc('runtime.ListGlobalFuncNames')();
console.log('names:', names.includes('js.myadd'), names.length > 10);

try {
  baton.registerFunc('js.myadd', () => 0);
} catch (e) {
  console.log('refused:', e.message);
}
baton.registerFunc('js.fails', () => { throw new RangeError('too far'); });
try {
  baton.getGlobalFunc('js.fails')();
} catch (e) {
  console.log(`thrown: ${e.code}: ${e.message}`);
}

baton.registerFunc('js.sum', (t) => t && t.data ? t.data.reduce((a, b) => a + b, 0) : 'no tensor');

if (process.argv[3]) {
  const module = baton.loadModule(process.argv[3]);
  const executor = module.getFunction('default')();
  const runWith = baton.getGlobalFunc('runtime.ModuleGetFunction')(executor, 'run_with', false);
  const outputs = runWith({shape: [2, 3], data: Float32Array.of(0, 1, 2, 3, 4, 5)});
  console.log('model:', JSON.stringify(outputs[0].shape), Array.from(outputs[0].data).join(' '));
}
