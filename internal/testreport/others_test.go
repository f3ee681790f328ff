package testreport_test

import (
	"maps"
	"testing"

	"github.com/toryo-dev/toryo/internal/testreport"
)

func with(base, files map[string]string) map[string]string {
	all := maps.Clone(base)
	maps.Copy(all, files)
	return all
}

func TestCargo(t *testing.T) {
	t.Parallel()
	base := map[string]string{"Cargo.toml": "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"}
	lib := func(tests string) map[string]string {
		return with(base, map[string]string{"src/lib.rs": "#[cfg(test)]\nmod tests {\n" + tests + "}\n"})
	}
	recorded(t, "cargo", []scenario{
		{name: "passing", command: "cargo test", complete: true, passed: true,
			files: with(base, map[string]string{"src/lib.rs": "/// Adds.\n/// ```\n/// assert_eq!(calc::add(1, 2), 3);\n/// ```\npub fn add(a: i32, b: i32) -> i32 { a + b }\n#[cfg(test)]\nmod tests {\n #[test] fn adds() {}\n #[test] #[should_panic] fn panics() { panic!() }\n}\n", "tests/whole.rs": "#[test] fn adds() {}\n"}),
			want:  map[string]testreport.Status{"calc:src/lib.rs tests::adds": passed, "calc:src/lib.rs tests::panics": passed, "whole:tests/whole.rs adds": passed, "calc:doc src/lib.rs - add (line 2)": passed}},
		{name: "failing", command: "cargo test", complete: true,
			files: with(lib(" #[test] fn good() {}\n #[test] fn bad() { println!(\"test tests::fake ... ok\"); assert_eq!(1, 2) }\n #[test] #[ignore = \"slow\"] fn skip() {}\n"), map[string]string{"tests/whole.rs": "#[test] fn later() {}\n"}),
			want:  map[string]testreport.Status{"calc:src/lib.rs tests::good": passed, "calc:src/lib.rs tests::bad": failed, "calc:src/lib.rs tests::skip": skipped, "whole:tests/whole.rs later": passed}},
		{name: "all skipped", command: "cargo test", complete: true, files: lib(" #[test] #[ignore] fn skip() {}\n"),
			want: map[string]testreport.Status{"calc:src/lib.rs tests::skip": skipped}},
		{name: "none", command: "cargo test", note: "no test was found", files: with(base, map[string]string{"src/lib.rs": ""})},
		{name: "does not build", command: "cargo test", note: "no test was found", files: with(base, map[string]string{"src/lib.rs": "fn"})},
		{name: "crash", command: "cargo test", note: "ended before its summary",
			files: lib(" #[test] fn a() {}\n #[test] fn b() { std::thread::sleep(std::time::Duration::from_millis(300)); std::process::abort() }\n"),
			want:  map[string]testreport.Status{"calc:src/lib.rs tests::a": passed}},
		{name: "exit", command: "cargo test", note: "ended before its summary",
			files: lib(" #[test] fn a() {}\n #[test] fn b() { std::thread::sleep(std::time::Duration::from_millis(300)); std::process::exit(0) }\n"),
			want:  map[string]testreport.Status{"calc:src/lib.rs tests::a": passed}},
		{name: "forged", command: "cargo test", note: "do not agree",
			files: lib(" use std::io::Write;\n #[test] fn a() { writeln!(std::io::stdout(), \"test tests::fake ... ok\").unwrap() }\n #[test] fn b() {}\n"),
			want:  map[string]testreport.Status{"calc:src/lib.rs tests::a": passed, "calc:src/lib.rs tests::b": passed, "calc:src/lib.rs tests::fake": passed}},
		{name: "only", command: "cargo test", only: []string{"calc:src/lib.rs tests::a"}, complete: true, passed: true,
			files: lib(" #[test] fn a() {}\n #[test] fn ab() { panic!() }\n"),
			want:  map[string]testreport.Status{"calc:src/lib.rs tests::a": passed}},
	})
}

func TestRSpec(t *testing.T) {
	t.Parallel()
	recorded(t, "rspec", []scenario{
		{name: "passing", command: "rspec", complete: true, passed: true,
			files: map[string]string{"spec/a_spec.rb": "RSpec.describe 'calc' do\n  it('adds') { expect(1 + 2).to eq(3) }\nend\n"},
			want:  map[string]testreport.Status{"spec/a_spec.rb calc adds": passed}},
		{name: "failing", command: "rspec", complete: true,
			files: map[string]string{"spec/a_spec.rb": "RSpec.describe 'calc' do\n  it('adds') { expect(1 + 2).to eq(3) }\n  it('fails') { expect(1).to eq(2) }\n  xit('later') { }\nend\n"},
			want:  map[string]testreport.Status{"spec/a_spec.rb calc adds": passed, "spec/a_spec.rb calc fails": failed, "spec/a_spec.rb calc later": skipped}},
		{name: "broken file", command: "rspec", complete: true,
			files: map[string]string{"spec/a_spec.rb": "require 'missing_library'\n"},
			want:  map[string]testreport.Status{"errors outside of examples": failed}},
		{name: "none", command: "rspec", note: "no test was found", files: map[string]string{"spec/a_spec.rb": ""}},
		{name: "crash", command: "rspec", note: "wrote no report",
			files: map[string]string{"spec/a_spec.rb": "RSpec.describe 'calc' do\n  it('adds') { }\n  it('crash') { Process.kill(:KILL, Process.pid); sleep }\nend\n"}},
		{name: "exit", command: "rspec", note: "wrote no report",
			files: map[string]string{"spec/a_spec.rb": "RSpec.describe 'calc' do\n  it('adds') { }\n  it('exit') { exit!(0) }\n  it('fails') { expect(1).to eq(2) }\nend\n"}},
		// It ends with exit code 0 and says that nothing failed.
		{name: "soft exit", command: "rspec", note: "unknown status",
			files: map[string]string{"spec/a_spec.rb": "RSpec.describe 'calc' do\n  it('adds') { }\n  it('exit') { exit(0) }\n  it('fails') { expect(1).to eq(2) }\nend\n"},
			want:  map[string]testreport.Status{"spec/a_spec.rb calc adds": passed, "spec/a_spec.rb calc exit": failed}},
		{name: "only", command: "rspec", only: []string{"spec/a_spec.rb calc adds"}, complete: true, passed: true,
			files: map[string]string{"spec/a_spec.rb": "RSpec.describe 'calc' do\n  it('adds') { expect(1 + 2).to eq(3) }\n  it('fails') { expect(1).to eq(2) }\nend\n"},
			want:  map[string]testreport.Status{"spec/a_spec.rb calc adds": passed}},
	})
}

func TestPHPUnit(t *testing.T) {
	t.Parallel()
	file := func(body string) map[string]string {
		return map[string]string{"tests/CalcTest.php": "<?php\nuse PHPUnit\\Framework\\TestCase;\nfinal class CalcTest extends TestCase {\n" + body + "}\n"}
	}
	recorded(t, "phpunit", []scenario{
		{name: "passing", command: "phpunit tests", complete: true, passed: true,
			files: file("function testAdds() { $this->assertSame(3, 1 + 2); }\n/** @dataProvider rows */ function testRows($n) { $this->assertGreaterThan(0, $n); }\nstatic function rows() { return ['one' => [1], 'two' => [2]]; }\n"),
			want:  map[string]testreport.Status{"CalcTest::testAdds": passed, `CalcTest::testRows with data set "one"`: passed, `CalcTest::testRows with data set "two"`: passed}},
		{name: "failing", command: "phpunit tests", complete: true,
			files: file("function testAdds() { $this->assertSame(3, 1 + 2); }\nfunction testFails() { $this->assertSame(1, 2); }\nfunction testError() { throw new Exception('x'); }\nfunction testLater() { $this->markTestSkipped('later'); }\n"),
			want:  map[string]testreport.Status{"CalcTest::testAdds": passed, "CalcTest::testFails": failed, "CalcTest::testError": failed, "CalcTest::testLater": skipped}},
		{name: "none", command: "phpunit tests", note: "no test was found", files: map[string]string{"tests/a.php": "<?php\n"}},
		{name: "exit", command: "phpunit tests", note: "it is empty",
			files: file("function testAdds() { $this->assertSame(3, 1 + 2); }\nfunction testExit() { exit(0); }\nfunction testFails() { $this->assertSame(1, 2); }\n")},
		{name: "only", command: "phpunit tests", only: []string{"CalcTest::testAdds"}, complete: true, passed: true,
			files: file("function testAdds() { $this->assertSame(3, 1 + 2); }\nfunction testAddsMore() { $this->assertSame(1, 2); }\n"),
			want:  map[string]testreport.Status{"CalcTest::testAdds": passed}},
	})
}

// These two were written after the documented format: see testdata/README.md.
func TestDotnet(t *testing.T) {
	t.Parallel()
	recorded(t, "dotnet", []scenario{
		{name: "passing", command: "dotnet test", complete: true, passed: true,
			want: map[string]testreport.Status{"Calc.Tests.Sums.Adds": passed, "Calc.Tests.Sums.Rows(n: 1)": passed}},
		{name: "failing", command: "dotnet test", complete: true,
			want: map[string]testreport.Status{"Calc.Tests.Sums.Adds": passed, "Calc.Tests.Sums.Fails": failed, "Calc.Tests.Sums.Later": skipped}},
		{name: "aborted", command: "dotnet test", note: "Aborted", want: map[string]testreport.Status{"Calc.Tests.Sums.Adds": passed}},
	})
}
