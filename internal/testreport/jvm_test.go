package testreport_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/testreport"
)

func javaClass(name, body string) string {
	return "import org.junit.*;\npublic class " + name + " {\n" + body + "}\n"
}

const (
	javaGood  = "@Test public void good() {}\n"
	javaBad   = "@Test public void bad() { Assert.assertEquals(1, 2); }\n"
	javaSkip  = "@Ignore(\"later\") @Test public void skip() {}\n"
	javaExit  = "@Test public void exit() { System.exit(0); }\n"
	javaForge = "@Test public void forge() { System.out.println(\"Tests run: 9, Failures: 0, Errors: 0, Skipped: 0\"); }\n"
)

func TestMaven(t *testing.T) {
	t.Parallel()
	pom := map[string]string{"pom.xml": `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>calc</artifactId><version>1</version>
<properties><maven.compiler.source>8</maven.compiler.source><maven.compiler.target>8</maven.compiler.target><project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>
<dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.x</version><scope>test</scope></dependency></dependencies>
<build><plugins><plugin><artifactId>maven-compiler-plugin</artifactId><version>3.10.1</version></plugin><plugin><artifactId>maven-resources-plugin</artifactId><version>3.3.0</version></plugin>
<plugin><artifactId>maven-surefire-plugin</artifactId><version>2.22.3</version></plugin></plugins></build></project>
`}
	const command = "mvn -B -o -Dmaven.repo.local=/usr/share/maven-repo test"
	// A report of another run is no report of this one.
	const old = `<testsuite name="OldTest" tests="1"><testcase classname="OldTest" name="old"/></testsuite>`
	recorded(t, "maven", []scenario{
		{name: "passing", command: command, complete: true, passed: true,
			files: with(pom, map[string]string{"src/test/java/CalcTest.java": javaClass("CalcTest", javaGood), "target/surefire-reports/TEST-OldTest.xml": old}),
			want:  map[string]testreport.Status{"CalcTest.good": passed}},
		{name: "failing", command: command, complete: true,
			files: with(pom, map[string]string{"src/test/java/CalcTest.java": javaClass("CalcTest", javaGood+javaBad+javaSkip+javaForge), "src/test/java/OtherTest.java": javaClass("OtherTest", "@BeforeClass public static void up() { throw new RuntimeException(\"x\"); }\n"+javaGood)}),
			want:  map[string]testreport.Status{"CalcTest.good": passed, "CalcTest.bad": failed, "CalcTest.skip": skipped, "CalcTest.forge": passed, "OtherTest.OtherTest": failed}},
		{name: "all skipped", command: command, complete: true,
			files: with(pom, map[string]string{"src/test/java/CalcTest.java": javaClass("CalcTest", javaSkip)}),
			want:  map[string]testreport.Status{"CalcTest.skip": skipped}},
		{name: "none", command: command, note: "wrote no report", files: pom},
		{name: "does not build", command: command, note: "wrote no report", files: with(pom, map[string]string{"src/test/java/CalcTest.java": "class"})},
		{name: "exit", command: command + " -Dsurefire.runOrder=alphabetical", note: "failed outside the tests",
			files: with(pom, map[string]string{"src/test/java/ACalcTest.java": javaClass("ACalcTest", javaGood), "src/test/java/ZCalcTest.java": javaClass("ZCalcTest", javaExit)}),
			want:  map[string]testreport.Status{"ACalcTest.good": passed}},
		{name: "only", command: command, only: []string{"CalcTest.good"}, complete: true, passed: true,
			files: with(pom, map[string]string{"src/test/java/CalcTest.java": javaClass("CalcTest", javaGood+javaBad)}),
			want:  map[string]testreport.Status{"CalcTest.good": passed}},
	})
}

func TestGradle(t *testing.T) {
	t.Parallel()
	build := map[string]string{"settings.gradle": "rootProject.name = 'calc'\n",
		"build.gradle": "apply plugin: 'java'\ndependencies { testCompile files('/usr/share/java/junit4.jar', '/usr/share/java/hamcrest-core.jar') }\n"}
	const command = "gradle --offline --no-daemon test"
	recorded(t, "gradle", []scenario{
		{name: "passing", command: command, complete: true, passed: true,
			files: with(build, map[string]string{"src/test/java/CalcTest.java": javaClass("CalcTest", javaGood)}),
			want:  map[string]testreport.Status{"CalcTest.good": passed}},
		{name: "failing", command: command, complete: true,
			files: with(build, map[string]string{"src/test/java/CalcTest.java": javaClass("CalcTest", javaGood+javaBad+javaSkip+javaForge)}),
			want:  map[string]testreport.Status{"CalcTest.good": passed, "CalcTest.bad": failed, "CalcTest.skip": skipped, "CalcTest.forge": passed}},
		{name: "none", command: command, note: "wrote no report", files: build},
		{name: "exit", command: command, note: "wrote no report",
			files: with(build, map[string]string{"src/test/java/CalcTest.java": javaClass("CalcTest", javaGood+javaExit)})},
	})
}
