package command

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/task"
)

// Config is the command toryo config.
func Config(p site.Program) *cobra.Command {
	return cli.Group("config", "Write and check the configuration", configInitCommand(p), configCheckCommand(p))
}

type configInit struct {
	site.Program
	file  string
	force bool
}

func configInitCommand(p site.Program) *cobra.Command {
	o := configInit{Program: p}
	c := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a commented toryo.yaml",
		Long:  "Write a configuration with every key, what it is for and its default.\nFILE is " + cli.DefaultFile + " unless given; - writes to standard output.",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o.file = cli.DefaultFile
			if len(args) == 1 {
				o.file = args[0]
			}
			return o.run()
		},
	}
	c.Flags().BoolVar(&o.force, "force", false, "overwrite the file if it exists")
	return c
}

func (o configInit) run() error {
	if o.file == "-" {
		_, err := o.Stdout.Write(config.Template())
		return err
	}
	if _, err := os.Lstat(o.file); !o.force && !errors.Is(err, fs.ErrNotExist) {
		return task.Errorf(task.Conflict, "%s is there already", o.file).WithHint("give another name, or --force to overwrite it")
	}
	text, err := o.text()
	if err != nil {
		return err
	}
	if err := connect.WriteWhole(o.file, text, 0o644); err != nil {
		return task.Wrap(task.Conflict, err, "cannot write "+o.file).WithHint("choose a folder that you may write to")
	}
	_, err = fmt.Fprintf(o.Stdout, "wrote %s\ncheck it with: toryo config check %s\n", o.file, o.file)
	return err
}

// text is what is written. The configuration of a service names the data directory that the
// service has, so that commands find the same one.
func (o configInit) text() ([]byte, error) {
	if !config.IsMachineFile(o.file) {
		return config.Template(), nil
	}
	return config.Edit(config.Template(), config.Changes{Set: map[string]string{"data_dir": config.Machine.Data}})
}

type configCheck struct {
	site.Program
	file  string
	print bool
}

func configCheckCommand(p site.Program) *cobra.Command {
	o := configCheck{Program: p}
	c := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a configuration and report its problems by line and key",
		Long:  "Report every problem of a configuration in one run, as FILE:LINE:COLUMN: KEY: what is\nwrong. Environment variables count too. FILE is " + cli.DefaultFile + " unless given" + orMachineFile() + ".",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o.file = cmp.Or(new(cli.Settings).FileOrDefault(), cli.DefaultFile)
			if len(args) == 1 {
				o.file = args[0]
			}
			return o.run()
		},
	}
	c.Flags().BoolVar(&o.print, "print", false, "also print what is in force and where it comes from; secrets are masked")
	return c
}

// orMachineFile names the configuration of the machine, where there can be one.
func orMachineFile() string {
	if config.Machine.File == "" {
		return ""
	}
	return ", or else\n" + config.Machine.File
}

func (o configCheck) run() error {
	loaded, report := config.Load(o.file, o.Environ, nil)
	for _, warning := range report.Warnings {
		if _, err := fmt.Fprintf(o.Stdout, "warning: %s\n", warning); err != nil {
			return err
		}
	}
	for _, problem := range report.Problems {
		if _, err := fmt.Fprintln(o.Stdout, problem); err != nil {
			return err
		}
	}
	if len(report.Problems) > 0 {
		return task.Wrap(task.BadConfig, cli.ErrReported, fmt.Sprintf("%d problems", len(report.Problems)))
	}
	if o.print {
		if err := report.Print(o.Stdout, loaded); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(o.Stdout, "%s: ok\n", o.file)
	return err
}
