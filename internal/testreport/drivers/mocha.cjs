'use strict'
// A reporter of mocha: one line for each test, and one at the end. People still see
// mocha's own report.
const fs = require('node:fs')
const path = require('node:path')
const { createRequire } = require('node:module')
const control = require('./control.cjs')

const append = fs.appendFileSync
const file = path.join(__dirname, 'mocha.jsonl')
const write = (line) => append(file, JSON.stringify(line) + '\n')

module.exports = class Report {
  constructor(runner, options) {
    let cases = 0
    const { Spec } = createRequire(path.join(process.cwd(), 'x'))('mocha').reporters
    this.spec = new Spec(runner, options)
    const add = (status) => (test, error) => {
      const from = test.file ? path.relative(process.cwd(), test.file) : ''
      write({
        case: [from, ...test.titlePath()].filter(Boolean).join(' > '),
        file: from,
        status,
        message: error ? String(error.stack || error.message || error).slice(0, 4000) : '',
      })
      cases++
    }
    runner.on('pass', add('passed'))
    runner.on('fail', add('failed'))
    runner.on('pending', add('skipped'))
    runner.on('end', () => {
      write({ control: control() })
      if (runner.total !== undefined && runner.stats && runner.stats.tests > cases) write({ doubt: 'mocha counts more tests than it reported' })
      write({ end: cases })
    })
  }

  done(failures, exit) {
    if (this.spec.done) this.spec.done(failures, exit)
    else exit(failures)
  }
}
