'use strict'
// Loaded into every process that runs tests of node or mocha, before them. At the end
// of the process it looks whether assertions still fail, and says that the process
// came to its end by itself: a test that calls process.exit(0) takes the tests after
// it along, and node reports them nowhere.
const fs = require('node:fs')
const path = require('node:path')
const assert = require('node:assert')
const { isMainThread } = require('node:worker_threads')

// What decides about tests, before any of them has run.
const functions = [assert, assert.strict].map((of) => [of, Object.entries(of).filter(([, value]) => typeof value === 'function')])

function control() {
  for (const [of, entries] of functions) {
    for (const [name, value] of entries) if (of[name] !== value) return 'passed'
  }
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
  const file = path.join(__dirname, `process-${process.pid}-${Math.random().toString(36).slice(2)}.jsonl`)
  const append = fs.appendFileSync
  const write = (line) => append(file, JSON.stringify(line) + '\n')
  // What a test starts is not part of the run.
  const ours = `--require=${__filename}`
  const options = process.env.NODE_OPTIONS || ''
  if (options.includes(ours)) process.env.NODE_OPTIONS = options.slice(0, options.indexOf(ours)).trim()
  write({ start: path.relative(process.cwd(), process.argv[1] || 'node') })
  let ended = false
  const end = (...lines) => {
    if (ended) return
    ended = true
    for (const line of lines) write(line)
    write({ end: 0 })
  }
  const last = process.execArgv.includes('--test-force-exit') ? 'exit' : 'beforeExit'
  process.once(last, () => end({ control: control() }))
  // A file that fails as a whole is reported as failed.
  process.once('exit', (code) => code !== 0 && end())
}

if (isMainThread && process.env.NODE_TEST_CONTEXT) watch()
module.exports = control
