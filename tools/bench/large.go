package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/toryo-dev/toryo/internal/workdir"
)

// largeFiles is how many files the large repository has.
const largeFiles = 100_000

// measureLarge begins the run of measureRuns in a repository of many files, until the first request.
func measureLarge(ctx context.Context, folder string) ([]row, error) {
	took, megabytes, err := runLarge(ctx, folder, true)
	if err != nil {
		return nil, err
	}
	return []row{{fmt.Sprintf("%d files, %d MB: first request", largeFiles, megabytes), fmt.Sprintf("%.1f s", took.first.Seconds()), "10 s"}}, nil
}

func runLarge(ctx context.Context, folder string, begin bool) (took ran, megabytes int, err error) {
	folder, err = os.MkdirTemp(folder, "large-")
	if err != nil {
		return ran{}, 0, err
	}
	defer func() { _ = workdir.Remove(folder) }()
	repository := filepath.Join(folder, "repository")
	if megabytes, err = makeLarge(ctx, repository, largeFiles); err != nil {
		return ran{}, 0, err
	}
	one := contender{
		name: "Toryo", timeout: largeTimeout, onlyFirst: begin,
		rules: toryoRules(`echo step-${turn} > step-${turn}.txt`), command: toryoRunIn(filepath.Dir(folder), repository),
	}
	if begin {
		one.timeout = beginTimeout
	}
	took, err = one.run(ctx, filepath.Join(folder, "run"))
	return took, megabytes, err
}

// measureLargeRun does all of the run.
func measureLargeRun(ctx context.Context, folder string) ([]row, error) {
	took, megabytes, err := runLarge(ctx, folder, false)
	if err != nil {
		return nil, err
	}
	return []row{{
		fmt.Sprintf("%d files, %d MB, %d turns, each command changes a file: first request; per turn; whole run; processor time; memory of all processes", largeFiles, megabytes, runTurns),
		fmt.Sprintf("%.1f s; %d ms; %.1f s; %.1f s; %d MB", took.first.Seconds(), took.turn.Milliseconds(), took.whole.Seconds(), took.processor.Seconds(), took.memory*1024/1e6),
		"first request: 10 s",
	}}, nil
}

// makeLarge makes a repository with one commit of so many files, in folders as deep and of
// sizes as different as those of programs are.
func makeLarge(ctx context.Context, repository string, files int) (megabytes int, err error) {
	if output, err := exec.CommandContext(ctx, "git", "init", "--quiet", "--initial-branch=main", repository).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, output)
	}
	command := exec.CommandContext(ctx, "git", "-C", repository, "-c", "core.compression=1", "fast-import", "--quiet")
	input, err := command.StdinPipe()
	if err != nil {
		return 0, err
	}
	var said bytes.Buffer
	command.Stderr = &said
	if err := command.Start(); err != nil {
		return 0, err
	}
	length, err := writeLarge(input, files)
	if closed := input.Close(); err == nil {
		err = closed
	}
	if ended := command.Wait(); ended != nil {
		return 0, fmt.Errorf("%w: %s", ended, said.String())
	}
	return length / 1e6, err
}

// writeLarge writes the commit as git fast-import reads it, and returns how many bytes the
// files have.
func writeLarge(to io.Writer, files int) (length int, err error) {
	const most = 1 << 20
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the files are the same in each run
	text := largeText(random, 4*most)
	out := bufio.NewWriterSize(to, 1<<20)
	_, _ = fmt.Fprint(out, "commit refs/heads/main\ncommitter bench <bench@example.com> 1700000000 +0000\ndata 5\nstart\n") // Flush has its error
	for i := range files {
		folder := fmt.Sprintf("area%02d/part%02d/folder%d", i%40, i/40%25, i/1000%8)
		if i%3 == 0 {
			folder += fmt.Sprintf("/inner%d", i/8000%3)
		}
		size := min(max(int(math.Exp(7.8+1.2*random.NormFloat64())), 20), most) // a median of 2.4 kB
		at := random.IntN(len(text) - size)
		content := fmt.Sprintf("file %d\n%s", i, text[at:at+size])
		_, _ = fmt.Fprintf(out, "M 100644 inline %s/file%06d.txt\ndata %d\n%s\n", folder, i, len(content), content)
		length += len(content)
	}
	return length, out.Flush()
}

// largeText is text that packs about as well as source does.
func largeText(random *rand.Rand, length int) string {
	words := strings.Fields("return func if err nil value string int the for range context request server name list append len map struct")
	var text strings.Builder
	for text.Len() < length {
		for range 3 + random.IntN(9) {
			word := words[random.IntN(len(words))]
			if random.IntN(3) == 0 {
				word = fmt.Sprintf("x%x", random.IntN(1<<16))
			}
			text.WriteString(word + " ")
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// toryoRunIn is toryo run in a repository that is there.
func toryoRunIn(programs, repository string) func(ctx context.Context, folder, url string) (*exec.Cmd, error) {
	return func(ctx context.Context, folder, url string) (*exec.Cmd, error) {
		config := filepath.Join(folder, "toryo.yaml")
		text := fmt.Sprintf("data_dir: %s\nllm:\n  provider: anthropic\n  model: bench\n  base_url: %s\n", filepath.Join(folder, "data"), url)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return nil, err
		}
		command := exec.CommandContext(ctx, filepath.Join(programs, "toryo"), "run", "--config", config, "--repo", repository, "--issue", "Step through it")
		command.Env = append(os.Environ(), "TORYO_LLM_API_KEY=bench")
		return command, nil
	}
}
