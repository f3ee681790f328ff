// Loaded by vitest before each test file, after the project's own set-up files. It names
// the tests that are marked as failing, and after the tests of the file it looks whether
// expect still fails.
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, expect } from 'vitest'

const append = fs.appendFileSync
const number = `${process.pid}-${Math.random().toString(36).slice(2)}`
const file = path.join(path.dirname(fileURLToPath(import.meta.url)), `vitest-${number}.jsonl`)

function control() {
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

afterEach(({ task }) => {
  if (!task.fails) return
  const names = [task.name]
  for (let group = task.suite; group && group !== task.file; group = group.suite) names.unshift(group.name)
  append(file, JSON.stringify({ expected: [task.file.filepath, ...names] }) + '\n')
})

afterAll(() => {
  append(file, JSON.stringify({ control: control() }) + '\n' + JSON.stringify({ end: 0 }) + '\n')
})
