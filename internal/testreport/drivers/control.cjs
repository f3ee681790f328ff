'use strict'
// Loaded into every process that runs tests of node or mocha, before them. At the end
// of the process it looks whether assertions still fail, and says that the process
// came to its end by itself: a test that calls process.exit(0) takes the tests after
// it along, and node reports them nowhere.
const fs = require('node:fs')
const path = require('node:path')
const assert = require('node:assert')
const async = require('node:async_hooks')
const stream = require('node:stream')
const v8 = require('node:v8')
const { isMainThread } = require('node:worker_threads')

const { getOwnPropertyDescriptor: describe, getOwnPropertyNames: namesOf, getPrototypeOf: classOf } = Object

// What decides about tests, before any of them has run: objects, names and values.
const functions = []

function keep(of, names = namesOf(of)) {
  for (const name of names) {
    const { value, get } = describe(of, name) || {}
    if (typeof (value || get) === 'function') functions[functions.length] = { of, name, value, get }
  }
}

keep(assert)
keep(assert.strict)

function changed() {
  for (let i = 0; i < functions.length; i++) {
    const now = describe(functions[i].of, functions[i].name)
    if (!now || now.value !== functions[i].value || now.get !== functions[i].get) return true
  }
  return false
}

// keepRunner keeps what the runner of node runs tests with, and reports them. It does not
// show its own classes: the first test that is made does. EventEmitter is left out, as the
// module node:domain changes it.
function keepRunner() {
  keep(async.AsyncResource.prototype)
  keep(stream.Readable.prototype, ['push', 'read'])
  keep(v8.Serializer.prototype)
  keep(v8.DefaultSerializer.prototype)
  const hook = async.createHook({
    init(id, type, trigger, resource) {
      if (type !== 'Test') return
      hook.disable()
      for (let of = classOf(resource); of && of !== async.AsyncResource.prototype && of !== Object.prototype; of = classOf(of)) keep(of)
    },
  })
  hook.enable()
}

function control() {
  if (changed()) return 'passed'
  const wrong = [
    () => assert.strictEqual(1, 2),
    () => assert.equal(1, 2),
    () => assert.deepStrictEqual({ a: 1 }, { a: 2 }),
    () => assert.deepEqual([1], [2]),
    () => assert.notStrictEqual(1, 1),
    () => assert.ok(false),
    () => assert(false),
    () => assert.throws(() => {}),
    () => assert.fail('control'),
    () => require('node:assert/strict').equal(1, 2),
  ]
  for (const assertion of wrong) {
    try {
      assertion()
    } catch {
      continue
    }
    return 'passed'
  }
  return 'failed'
}

function watch() {
  const file = fs.openSync(path.join(__dirname, `process-${process.pid}-${Math.random().toString(36).slice(2)}.jsonl`), 'a')
  const write = fs.writeSync
  delete require.cache[__filename] // it says where the report is
  // What a test starts is not part of the run.
  const ours = `--require=${__filename}`
  const options = process.env.NODE_OPTIONS || ''
  if (options.includes(ours)) process.env.NODE_OPTIONS = options.slice(0, options.indexOf(ours)).trim()
  write(file, JSON.stringify({ start: path.relative(process.cwd(), process.argv[1] || 'node') }) + '\n')
  keepRunner()
  let came = false // to its end by itself
  let suspect = false // something was changed, and perhaps put back
  setInterval(() => (suspect = suspect || changed()), 50).unref()
  const last = process.execArgv.includes('--test-force-exit') ? 'exit' : 'beforeExit'
  process.once(last, () => {
    came = true
    suspect = suspect || changed()
  })
  process.once('exit', (code) => {
    if (came) write(file, suspect || control() !== 'failed' ? '{"control":"passed"}\n' : '{"control":"failed"}\n')
    // A file that fails as a whole is reported as failed.
    if (came || code !== 0) write(file, '{"end":0}\n')
  })
}

if (isMainThread && process.env.NODE_TEST_CONTEXT) watch()
module.exports = control
