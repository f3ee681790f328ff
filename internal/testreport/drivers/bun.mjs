// Loaded by bun test before all test files. At the end it looks whether expect still
// fails.
import fs from 'node:fs'
import path from 'node:path'
import { afterAll, expect } from 'bun:test'

const append = fs.appendFileSync
const file = path.join(import.meta.dir, `bun-${process.pid}-${Math.random().toString(36).slice(2)}.jsonl`)

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

afterAll(() => {
  append(file, JSON.stringify({ control: control() }) + '\n' + JSON.stringify({ end: 0 }) + '\n')
})
