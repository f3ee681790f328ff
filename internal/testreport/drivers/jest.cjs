'use strict'
// A test runner of jest: jest's own, and after each test file a control, in the
// environment of that file: with expect as the file and the project's set-up left it.
// It also names the tests that are marked as failing, which jest reports as passed.
const fs = require('node:fs')
const path = require('node:path')
const { createRequire } = require('node:module')

const append = fs.appendFileSync

// circus is the runner that jest takes by default. Package managers that hoist
// nothing show it only to jest-config.
function circus(root) {
  for (const way of [[], ['jest'], ['jest', 'jest-cli'], ['jest', '@jest/core'], ['jest', 'jest-cli', 'jest-config'], ['jest', '@jest/core', 'jest-config']]) {
    try {
      let from = createRequire(path.join(root, 'package.json'))
      for (const name of way) from = createRequire(from.resolve(name + '/package.json'))
      const found = from('jest-circus/package.json') && from('jest-circus/runner')
      return found.default || found
    } catch {
      continue
    }
  }
  throw new Error('jest-circus, the runner of jest, is not installed')
}

function control(expect) {
  if (typeof expect !== 'function') return 'missing'
  const wrong = [
    () => expect(1).toBe(2),
    () => expect({ a: 1 }).toEqual({ a: 2 }),
    () => expect([1]).toStrictEqual([2]),
    () => expect(false).toBeTruthy(),
    () => expect(1).not.toBe(1),
    () => expect([1]).toContain(2),
    () => expect(() => {}).toThrow(),
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

module.exports = async function run(globalConfig, config, environment, runtime, testPath, ...rest) {
  const number = `${process.pid}-${Date.now()}-${Math.random().toString(36).slice(2)}`
  const file = path.join(__dirname, `jest-${number}.jsonl`)
  const write = (line) => append(file, JSON.stringify(line) + '\n')
  write({ start: path.relative(config.rootDir, testPath) })
  const handle = environment.handleTestEvent
  environment.handleTestEvent = function (event, state) {
    if (event.name === 'test_done' && event.test.failing) {
      const names = [event.test.name]
      for (let group = event.test.parent; group.parent; group = group.parent) names.unshift(group.name)
      write({ expected: [testPath, ...names] })
    }
    return handle?.call(environment, event, state)
  }
  try {
    const result = await circus(config.rootDir)(globalConfig, config, environment, runtime, testPath, ...rest)
    // Without globals, expect is what the file imports.
    write({ control: control(environment.global.expect || runtime.requireModuleOrMock(testPath, '@jest/globals').expect) })
    return result
  } finally {
    write({ end: 0 }) // a file that cannot be loaded is reported as failed
  }
}
