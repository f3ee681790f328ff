package testreport_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/testreport"
)

const nodeHead = "const {test, describe, it} = require('node:test'); const assert = require('node:assert');\n"

func TestNode(t *testing.T) {
	t.Parallel()
	onMachine(t, "npm", []scenario{
		{name: "passing", command: "node --test", complete: true, passed: true,
			files: map[string]string{"a.test.js": nodeHead + "test('one', () => {})\ndescribe('group', () => { it('in', () => {}) })\ntest('outer', async t => { await t.test('inner', () => {}) })\n",
				"sub/b.test.mjs": "import test from 'node:test'\ntest('one', () => {})\n"},
			want: map[string]testreport.Status{"a.test.js > one": passed, "a.test.js > group > in": passed, "a.test.js > outer > inner": passed, "sub/b.test.mjs > one": passed}},
		{name: "failing", command: "node --test", complete: true,
			files: map[string]string{"a.test.js": nodeHead + "test('one', () => {})\ntest('bad', () => { assert.strictEqual(1, 2) })\ntest('skip', {skip: 'later'}, () => {})\ntest('todo', {todo: true}, () => {})\ndescribe('group', () => { it('in', () => { throw new Error('x') }) })\n",
				"b.test.js": "require('./missing')\n"},
			want: map[string]testreport.Status{"a.test.js > one": passed, "a.test.js > bad": failed, "a.test.js > skip": skipped, "a.test.js > todo": skipped, "a.test.js > group > in": failed, "b.test.js": failed}},
		{name: "expected to fail", command: "node --test", complete: true,
			files:    map[string]string{"a.test.js": nodeHead + "test('todo', {todo: 'later'}, () => { assert.fail() })\ntest('lucky', {todo: true}, () => {});\n(test.expectFailure ?? test.todo)('known', () => { assert.fail() })\n"},
			want:     map[string]testreport.Status{"a.test.js > todo": skipped, "a.test.js > lucky": skipped, "a.test.js > known": skipped},
			messages: map[string]string{"a.test.js > todo": expected + ": later", "a.test.js > lucky": expected, "a.test.js > known": expected}},
		{name: "script", command: "npm test", complete: true, passed: true,
			files: map[string]string{"package.json": `{"scripts": {"test": "npm run unit", "unit": "node --test tests/*.js"}}`, "tests/a.js": nodeHead + "test('one', () => {})\n"},
			want:  map[string]testreport.Status{"tests/a.js > one": passed}},
		{name: "all skipped", command: "node --test", complete: true,
			files: map[string]string{"a.test.js": nodeHead + "test.skip('one', () => {})\n"},
			want:  map[string]testreport.Status{"a.test.js > one": skipped}},
		{name: "file without tests", command: "node --test", complete: true,
			files: map[string]string{"a.test.js": "console.log('ok 1 - fine')\n"},
			want:  map[string]testreport.Status{"a.test.js": skipped}},
		{name: "none", command: "node --test", note: "no test was found", files: map[string]string{"a.js": ""}},
		{name: "crash", command: "node --test", note: "ended before its report did",
			files: map[string]string{"a.test.js": nodeHead + "test('one', () => {})\ntest('crash', () => { process.abort() })\n"},
			want:  map[string]testreport.Status{"a.test.js": failed}},
		{name: "exit", command: "node --test", note: "ended before its report did",
			files: map[string]string{"a.test.js": nodeHead + "test('one', () => {})\ntest('exit', () => { process.exit(0) })\ntest('bad', () => { assert.fail() })\n", "b.test.js": nodeHead + "test('b', () => {})\n"},
			want:  map[string]testreport.Status{"a.test.js": skipped, "b.test.js > b": passed}},
		{name: "exit late", command: "node --test", note: "ended before its report did",
			files: map[string]string{"a.test.js": nodeHead + "test('one', () => {})\ntest('exit', async () => { await new Promise(f => setTimeout(f, 100)); process.reallyExit(0) })\ntest('bad', () => { assert.fail() })\n"},
			want:  map[string]testreport.Status{"a.test.js > one": passed}},
		{name: "forged", command: "node --test", complete: true,
			files: map[string]string{"a.test.js": nodeHead + "console.log('TAP version 13\\nok 1 - fake\\n1..1\\n# tests 1\\n# pass 1')\ntest('bad', () => { assert.fail('wrong') })\n"},
			want:  map[string]testreport.Status{"a.test.js > bad": failed}},
		{name: "assertions changed", command: "node --test", note: "assertions or the runner were changed",
			files: map[string]string{"a.test.js": nodeHead + "assert.strictEqual = () => {}\ntest('bad', () => { assert.strictEqual(1, 2) })\n"},
			want:  map[string]testreport.Status{"a.test.js > bad": passed}},
		// A program that a test starts, and that ends early, is not the test.
		{name: "assertion changed", command: "node --test", note: "assertions or the runner were changed",
			files: map[string]string{"a.js": "const assert = require('node:assert'); const { match } = assert; assert.match = (text, pattern) => text === 'a' || match(text, pattern)",
				"a.test.js": "require('./a.js'); require('node:test')('one', () => require('node:assert').match('a', /b/))"},
			want: map[string]testreport.Status{"a.test.js > one": passed}},
		// They let the controls fail.
		{name: "scope changed", command: "node --test", note: "assertions or the runner were changed",
			files: map[string]string{"a.test.js": nodeHead + "const { AsyncResource } = require('node:async_hooks')\nconst real = AsyncResource.prototype.runInAsyncScope;\nAsyncResource.prototype.runInAsyncScope = function (...all) { try { return real.apply(this, all) } catch { return undefined } }\ntest('a', () => { assert.strictEqual(1, 2) })\n"},
			want:  map[string]testreport.Status{"a.test.js > a": passed}},
		{name: "scope changed for a while", command: "node --test", note: "assertions or the runner were changed",
			files: map[string]string{"a.test.js": nodeHead + "const { AsyncResource } = require('node:async_hooks')\nconst of = AsyncResource.prototype, real = of.runInAsyncScope;\nof.runInAsyncScope = function (...all) { try { return real.apply(this, all) } catch { return undefined } }\nsetTimeout(() => { of.runInAsyncScope = real }, 800)\ntest('a', () => { assert.strictEqual(1, 2) })\n"},
			want:  map[string]testreport.Status{"a.test.js > a": passed}},
		{name: "class of tests changed", command: "node --test", note: "assertions or the runner were changed",
			files: map[string]string{"a.test.js": nodeHead + "const { executionAsyncResource } = require('node:async_hooks')\ntest('first', () => { const of = Object.getPrototypeOf(executionAsyncResource()); of.fail = of.pass })\ntest('a', () => { assert.strictEqual(1, 2) })\n"},
			want:  map[string]testreport.Status{"a.test.js > first": passed, "a.test.js > a": passed}},
		{name: "stream changed", command: "node --test", note: "assertions or the runner were changed",
			files: map[string]string{"a.test.js": nodeHead + "const { Readable } = require('node:stream')\nconst real = Readable.prototype.push;\nReadable.prototype.push = function (value, ...rest) {\n  if (value?.type === 'test:fail') { value.type = 'test:pass'; delete value.data.details.error }\n  return real.call(this, value, ...rest)\n}\nprocess.on('exit', () => { process.exitCode = 0 })\ntest('a', () => { assert.strictEqual(1, 2) })\n"},
			want:  map[string]testreport.Status{"a.test.js > a": passed}},
		{name: "messages changed", command: "node --test", note: "1 tests failed, and the exit code is 0", complete: true,
			files: map[string]string{"a.test.js": "const { write } = process.stdout; process.stdout.write = function (chunk, ...rest) { return write.call(this, Buffer.isBuffer(chunk) ? Buffer.from(chunk.toString('latin1').replaceAll('test:fail', 'test:pass'), 'latin1') : chunk, ...rest) }\nprocess.on('exit', () => { process.exitCode = 0 })\nrequire('node:test')('one', () => { throw new Error('wrong') })"},
			want:  map[string]testreport.Status{"a.test.js > one": failed}},
		{name: "starts programs", command: "node --test", complete: true, passed: true,
			files: map[string]string{"a.test.js": nodeHead + "test('one', () => { require('child_process').execFileSync(process.execPath, ['-e', 'process.exit(0)']) })\n"},
			want:  map[string]testreport.Status{"a.test.js > one": passed}},
		{name: "only", command: "node --test", only: []string{"a.test.js > one"}, complete: true, passed: true,
			files: map[string]string{"a.test.js": nodeHead + "test('one', () => {})\ntest('bad', () => { assert.fail() })\n"},
			want:  map[string]testreport.Status{"a.test.js > one": passed}},
	})
}

func TestJest(t *testing.T) {
	t.Parallel()
	const manifest = `{"private": true, "scripts": {"test": "jest"}}`
	recorded(t, "jest", []scenario{
		{name: "passing", command: "npm test", complete: true, passed: true,
			files: map[string]string{"package.json": manifest, "a.test.js": "test('one', () => { expect(1).toBe(1) })\ndescribe('group', () => { test.each([1, 2])('n %d', () => {}) })\n"},
			want:  map[string]testreport.Status{"a.test.js > one": passed, "a.test.js > group > n 1": passed, "a.test.js > group > n 2": passed}},
		{name: "failing", command: "npx jest", complete: true,
			files: map[string]string{"package.json": manifest, "a.test.js": "test('one', () => {})\ntest('bad', () => { expect(1).toBe(2) })\ntest.skip('skip', () => {})\ntest.todo('todo')\n", "sub/b.test.js": "require('./missing')\n"},
			want:  map[string]testreport.Status{"a.test.js > one": passed, "a.test.js > bad": failed, "a.test.js > skip": skipped, "a.test.js > todo": skipped, "sub/b.test.js": failed}},
		{name: "expected to fail", command: "npm test", complete: true,
			files:    map[string]string{"package.json": manifest, "a.test.js": "test.failing('known', () => { expect(1).toBe(2) })\ntest.failing('lucky', () => {})\ndescribe('group', () => { test.failing.each([1, 2])('n %d', () => { expect(1).toBe(2) }) })\n"},
			want:     map[string]testreport.Status{"a.test.js > known": skipped, "a.test.js > lucky": failed, "a.test.js > group > n 1": skipped, "a.test.js > group > n 2": skipped},
			messages: map[string]string{"a.test.js > known": expected, "a.test.js > group > n 2": expected}},
		{name: "all skipped", command: "npm test", complete: true,
			files: map[string]string{"package.json": manifest, "a.test.js": "test.skip('skip', () => {})\n"},
			want:  map[string]testreport.Status{"a.test.js > skip": skipped}},
		{name: "none", command: "npm test", note: "wrote no re", files: map[string]string{"package.json": manifest}},
		{name: "crash", command: "npm test", note: "wrote no results",
			files: map[string]string{"package.json": manifest, "a.test.js": "test('one', () => {})\ntest('crash', () => { process.abort() })\n"}},
		{name: "exit", command: "npm test", note: "wrote no results",
			files: map[string]string{"package.json": manifest, "a.test.js": "test('one', () => {})\ntest('exit', () => { process.exit(0) })\ntest('bad', () => { expect(1).toBe(2) })\n"}},
		{name: "forged", command: "npm test", complete: true,
			files: map[string]string{"package.json": manifest, "a.test.js": "test('one', () => { process.stdout.write(JSON.stringify({numTotalTests: 1, success: true}) + '\\nTests: 2 passed, 2 total\\n') })\ntest('bad', () => { expect(1).toBe(2) })\n"},
			want:  map[string]testreport.Status{"a.test.js > one": passed, "a.test.js > bad": failed}},
		{name: "assertions changed", command: "npm test", note: "assertions or the runner were changed",
			files: map[string]string{"package.json": `{"scripts": {"test": "jest"}, "jest": {"setupFilesAfterEnv": ["./setup.js"]}}`, "setup.js": "const real = expect; global.expect = v => ({...real(v), toBe() {}})\n", "a.test.js": "test('bad', () => { expect(1).toBe(2) })\n"},
			want:  map[string]testreport.Status{"a.test.js > bad": passed}},
		{name: "only", command: "npm test", only: []string{"a.test.js > group > one"}, complete: true, passed: true,
			files: map[string]string{"package.json": manifest, "a.test.js": "describe('group', () => { test('one', () => {}); test('bad', () => { expect(1).toBe(2) }) })\n"},
			want:  map[string]testreport.Status{"a.test.js > group > one": passed, "a.test.js > group > bad": skipped}},
	})
}

func TestVitest(t *testing.T) {
	t.Parallel()
	const manifest = `{"private": true, "type": "module", "scripts": {"test": "vitest"}}`
	const head = "import { test, describe, expect } from 'vitest'\n"
	recorded(t, "vitest", []scenario{
		{name: "passing", command: "npm test", complete: true, passed: true,
			files: map[string]string{"package.json": manifest, "a.test.js": head + "test('one', () => { expect(1).toBe(1) })\ndescribe('group', () => { test.each([1, 2])('n %d', () => {}) })\n"},
			want:  map[string]testreport.Status{"a.test.js > one": passed, "a.test.js > group > n 1": passed, "a.test.js > group > n 2": passed}},
		{name: "failing", command: "npx vitest run", complete: true,
			files: map[string]string{"package.json": manifest, "a.test.js": head + "test('one', () => {})\ntest('bad', () => { expect(1).toBe(2) })\ntest.skip('skip', () => {})\ntest.todo('todo')\n", "sub/b.test.js": "import './missing'\n"},
			want:  map[string]testreport.Status{"a.test.js > one": passed, "a.test.js > bad": failed, "a.test.js > skip": skipped, "a.test.js > todo": skipped, "sub/b.test.js": failed}},
		{name: "expected to fail", command: "npm test", complete: true,
			files:    map[string]string{"package.json": manifest, "a.test.js": head + "test.fails('known', () => { expect(1).toBe(2) })\ntest.fails('lucky', () => {})\ndescribe('group', () => { test.fails.each([1, 2])('n %d', () => { expect(1).toBe(2) }) })\n"},
			want:     map[string]testreport.Status{"a.test.js > known": skipped, "a.test.js > lucky": failed, "a.test.js > group > n 1": skipped, "a.test.js > group > n 2": skipped},
			messages: map[string]string{"a.test.js > known": expected, "a.test.js > group > n 2": expected}},
		{name: "all skipped", command: "npm test", complete: true,
			files: map[string]string{"package.json": manifest, "a.test.js": head + "test.skip('skip', () => {})\n"},
			want:  map[string]testreport.Status{"a.test.js > skip": skipped}},
		{name: "none", command: "npm test", note: "no test was found", files: map[string]string{"package.json": manifest}},
		{name: "exit", command: "npm test", complete: true,
			files: map[string]string{"package.json": manifest, "a.test.js": head + "test('one', () => {})\ntest('exit', () => { process.exit(0) })\n"},
			want:  map[string]testreport.Status{"a.test.js > one": passed, "a.test.js > exit": failed}},
		{name: "exit late", command: "npm test", note: "some did not end",
			files: map[string]string{"package.json": manifest, "a.test.js": head + "test('one', () => {})\n", "b.test.js": head + "test('exit', () => { process.reallyExit(0) })\ntest('bad', () => { expect(1).toBe(2) })\n"},
			want:  map[string]testreport.Status{"a.test.js > one": passed, "b.test.js > exit": skipped, "b.test.js > bad": skipped}},
		{name: "assertions changed", command: "npm test", note: "assertions or the runner were changed",
			files: map[string]string{"package.json": manifest, "vitest.config.js": "export default { test: { setupFiles: ['./set.js'] } }\n",
				"set.js": "import { expect } from 'vitest'\nexpect.extend({ toBe: () => ({ pass: true, message: () => '' }) })\n", "a.test.js": head + "test('bad', () => { expect(1).toBe(2) })\n"},
			want: map[string]testreport.Status{"a.test.js > bad": passed}},
		{name: "only", command: "npm test", only: []string{"a.test.js > group > one"}, complete: true, passed: true,
			files: map[string]string{"package.json": manifest, "a.test.js": head + "describe('group', () => { test('one', () => {}); test('bad', () => { expect(1).toBe(2) }) })\n"},
			want:  map[string]testreport.Status{"a.test.js > group > one": passed, "a.test.js > group > bad": skipped}},
	})
}

func TestMocha(t *testing.T) {
	t.Parallel()
	const manifest = `{"private": true, "scripts": {"test": "mocha"}}`
	recorded(t, "mocha", []scenario{
		{name: "passing", command: "npm test", complete: true, passed: true,
			files: map[string]string{"package.json": manifest, "test/a.js": "it('one', () => {})\ndescribe('group', () => { it('in', () => {}) })\n"},
			want:  map[string]testreport.Status{"test/a.js > one": passed, "test/a.js > group > in": passed}},
		{name: "failing", command: "npx mocha", complete: true,
			files: map[string]string{"package.json": manifest, "test/a.js": "const assert = require('assert')\nit('one', () => {})\nit('bad', () => { assert.equal(1, 2) })\nit.skip('skip', () => {})\ndescribe('group', () => { before(() => { throw new Error('x') }); it('in', () => {}) })\n"},
			want:  map[string]testreport.Status{"test/a.js > one": passed, "test/a.js > bad": failed, "test/a.js > skip": skipped, `test/a.js > group > "before all" hook for "in"`: failed}},
		{name: "all skipped", command: "npm test", complete: true,
			files: map[string]string{"package.json": manifest, "test/a.js": "it.skip('skip', () => {})\n"},
			want:  map[string]testreport.Status{"test/a.js > skip": skipped}},
		{name: "none", command: "npm test", note: "wrote no report", files: map[string]string{"package.json": manifest}},
		{name: "crash", command: "npm test", note: "ended before its report did",
			files: map[string]string{"package.json": manifest, "test/a.js": "it('one', () => {})\nit('crash', () => { process.abort() })\n"},
			want:  map[string]testreport.Status{"test/a.js > one": passed}},
		{name: "exit", command: "npm test", note: "ended before its report did",
			files: map[string]string{"package.json": manifest, "test/a.js": "it('one', () => {})\nit('exit', () => { process.exit(0) })\nit('bad', () => { throw new Error('x') })\n"},
			want:  map[string]testreport.Status{"test/a.js > one": passed}},
		{name: "assertions changed", command: "npm test", note: "assertions or the runner were changed",
			files: map[string]string{"package.json": manifest, "test/a.js": "const assert = require('assert')\nassert.equal = () => {}\nit('bad', () => { assert.equal(1, 2) })\n"},
			want:  map[string]testreport.Status{"test/a.js > bad": passed}},
		{name: "only", command: "npm test", only: []string{"test/a.js > group > one"}, complete: true, passed: true,
			files: map[string]string{"package.json": manifest, "test/a.js": "describe('group', () => { it('one', () => {}); it('bad', () => { throw new Error('x') }) })\n"},
			want:  map[string]testreport.Status{"test/a.js > group > one": passed}},
	})
}

func TestBun(t *testing.T) {
	t.Parallel()
	const head = "import { test, describe, expect } from 'bun:test'\n"
	recorded(t, "bun", []scenario{
		{name: "passing", command: "bun test", complete: true, passed: true,
			files: map[string]string{"a.test.ts": head + "test('one', () => { expect(1).toBe(1) })\ndescribe('group', () => { describe('in', () => { test.each([1, 2])('n %d', () => {}) }) })\n", "sub/b.test.js": head + "test('one', () => {})\n"},
			want:  map[string]testreport.Status{"a.test.ts > one": passed, "a.test.ts > group > in > n 1": passed, "a.test.ts > group > in > n 2": passed, "sub/b.test.js > one": passed}},
		{name: "failing", command: "npm test", complete: true,
			files: map[string]string{"package.json": `{"scripts": {"test": "bun test"}}`, "a.test.ts": head + "test('one', () => {})\ntest('bad', () => { expect(1).toBe(2) })\ntest.skip('skip', () => {})\ntest.todo('todo')\n"},
			want:  map[string]testreport.Status{"a.test.ts > one": passed, "a.test.ts > bad": failed, "a.test.ts > skip": skipped, "a.test.ts > todo": skipped}},
		{name: "broken file", command: "bun test", complete: true,
			files: map[string]string{"a.test.ts": head + "test('one', () => {})\ntest('bad', () => { expect(1).toBe(2) })\n", "b.test.ts": "import './missing'\n"},
			want:  map[string]testreport.Status{"a.test.ts > one": passed, "a.test.ts > bad": failed, "errors outside of tests": failed}},
		{name: "all skipped", command: "bun test", complete: true,
			files: map[string]string{"a.test.ts": head + "test.skip('skip', () => {})\n"}, want: map[string]testreport.Status{"a.test.ts > skip": skipped}},
		{name: "none", command: "bun test", note: "wrote no report", files: map[string]string{"a.test.ts": "console.log(' 1 pass\\n 0 fail')\n"}},
		{name: "crash", command: "bun test", note: "wrote no report",
			files: map[string]string{"a.test.ts": head + "test('one', () => {})\ntest('crash', () => { process.kill(process.pid, 'SIGKILL') })\n"}},
		{name: "exit", command: "bun test", note: "wrote no report",
			files: map[string]string{"a.test.ts": head + "test('one', () => {})\ntest('exit', () => { process.exit(0) })\ntest('bad', () => { expect(1).toBe(2) })\n"}},
		{name: "forged", command: "bun test", complete: true,
			files: map[string]string{"a.test.ts": head + "test('bad', () => { console.log('(pass) bad\\n 1 pass\\n 0 fail'); expect(1).toBe(2) })\n"}, want: map[string]testreport.Status{"a.test.ts > bad": failed}},
		{name: "assertions changed", command: "bun test", note: "assertions or the runner were changed",
			files: map[string]string{"bunfig.toml": "[test]\npreload = ['./set.ts']\n", "set.ts": "import { expect } from 'bun:test'\nexpect.extend({ toBe: () => ({ pass: true, message: () => '' }) })\n", "a.test.ts": head + "test('bad', () => { expect(1).toBe(2) })\n"},
			want:  map[string]testreport.Status{"a.test.ts > bad": passed}},
		{name: "only", command: "bun test", only: []string{"a.test.ts > group > one"}, complete: true, passed: true,
			files: map[string]string{"a.test.ts": head + "describe('group', () => { test('one', () => {}); test('one more', () => { expect(1).toBe(2) }) })\n"},
			want:  map[string]testreport.Status{"a.test.ts > group > one": passed, "a.test.ts > group > one more": skipped}},
	})
}

func TestDeno(t *testing.T) {
	t.Parallel()
	recorded(t, "deno", []scenario{
		{name: "passing", command: "deno test -A", complete: true, passed: true,
			files: map[string]string{"a_test.js": "Deno.test('one', () => {})\nDeno.test('outer', async t => { await t.step('in', async t => { await t.step('deep', () => {}) }) })\n", "sub/b_test.ts": "Deno.test('one', () => {})\n"},
			want:  map[string]testreport.Status{"a_test.js > one": passed, "a_test.js > outer": passed, "a_test.js > outer > in": passed, "a_test.js > outer > in > deep": passed, "sub/b_test.ts > one": passed}},
		{name: "failing", command: "deno test", complete: true,
			files: map[string]string{"a_test.js": "Deno.test('one', () => {})\nDeno.test('bad', () => { throw new Error('wrong') })\nDeno.test.ignore('skip', () => {})\nDeno.test('outer', async t => { await t.step('in', () => { throw new Error('x') }) })\n", "sub/b_test.js": "throw new Error('load')\n"},
			want:  map[string]testreport.Status{"a_test.js > one": passed, "a_test.js > bad": failed, "a_test.js > skip": skipped, "a_test.js > outer": failed, "a_test.js > outer > in": failed, "sub/b_test.js": failed}},
		{name: "does not compile", command: "deno test", note: "wrote no report",
			files: map[string]string{"a_test.ts": "Deno.test('one', () => {})\n", "b_test.ts": "const n: number = 'x'\n"}},
		{name: "all skipped", command: "deno test", complete: true,
			files: map[string]string{"a_test.js": "Deno.test.ignore('skip', () => {})\n"}, want: map[string]testreport.Status{"a_test.js > skip": skipped}},
		{name: "none", command: "deno test", note: "no test was found", files: map[string]string{"a_test.js": "console.log('ok | 1 passed')\n"}},
		{name: "crash", command: "deno test -A", note: "wrote no report",
			files: map[string]string{"a_test.js": "Deno.test('one', () => {})\nDeno.test('crash', () => { Deno.kill(Deno.pid, 'SIGKILL') })\n"}},
		{name: "exit", command: "deno test -A", complete: true,
			files: map[string]string{"a_test.js": "Deno.test('one', () => {})\nDeno.test('exit', () => { Deno.exit(0) })\nDeno.test('bad', () => { throw new Error('x') })\n"},
			want:  map[string]testreport.Status{"a_test.js > one": passed, "a_test.js > exit": failed, "a_test.js > bad": failed}},
		{name: "only", command: "deno test", only: []string{"a_test.js > one > in"}, complete: true, passed: true,
			files: map[string]string{"a_test.js": "Deno.test('one', async t => { await t.step('in', () => {}) })\nDeno.test('one more', () => { throw new Error('x') })\n"},
			want:  map[string]testreport.Status{"a_test.js > one": passed, "a_test.js > one > in": passed, "a_test.js > one more": skipped}},
	})
}
