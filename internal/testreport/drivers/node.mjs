// A reporter of node --test: one line for each test, and one at the end.
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = process.cwd()

export default async function* report(source) {
  const line = (value) => JSON.stringify(value) + '\n'
  const names = []
  const children = []
  let cases = 0
  for await (const { type, data } of source) {
    if (type === 'test:start') {
      names.length = data.nesting
      children.length = data.nesting + 1
      names[data.nesting] = data.name
      children[data.nesting] = 0
      if (data.nesting > 0) children[data.nesting - 1]++
      continue
    }
    if (type !== 'test:pass' && type !== 'test:fail') continue
    if (data.skip === 'test name does not match pattern') continue // newer versions report nothing
    const from = data.file?.startsWith('file:') ? fileURLToPath(data.file) : data.file
    const file = from ? path.relative(root, from) : ''
    const failed = (type === 'test:fail' || data.details?.error) && !data.todo
    const error = data.details?.error
    const message = failed ? String(error?.cause?.stack ?? error?.cause ?? error?.message ?? '').slice(0, 4000) : ''
    const isFile = data.nesting === 0 && from && path.resolve(root, data.name) === from
    if (isFile && !failed) {
      // It ran without an error, and no test was in it.
      yield line({ case: file, file, status: 'skipped', message: 'no test was reported by this file' })
      cases++
      continue
    }
    const isGroup = data.details?.type === 'suite' || children[data.nesting] > 0
    if (isGroup && !(failed && error?.failureType !== 'subtestsFailed')) continue
    const skipped = data.skip !== undefined && data.skip !== false
    const expected = [data.todo, data.expectFailure].find((mark) => mark !== undefined && mark !== false)
    const status = failed ? 'failed' : skipped || expected !== undefined ? 'skipped' : 'passed'
    const reason = skipped ? data.skip : expected !== undefined ? 'expected to fail' + (typeof expected === 'string' ? ': ' + expected : '') : ''
    const name = [...names.slice(0, data.nesting), data.name].join(' > ')
    yield line({
      case: isFile ? file : file + ' > ' + name,
      file,
      status,
      message: message || (typeof reason === 'string' ? reason : ''),
    })
    cases++
  }
  yield line({ end: cases })
}
