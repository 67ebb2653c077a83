// Run measures copiers of Kafka topics against one another. The runner starts
// every candidate as a process of its own, some of them other commands of this
// same program:
//
//	run kafka [-row NAME,...] [-quick] [-repeats N] [-size MB]   on real brokers (build tag kafka)
//	run table FILE...             what the journals of several runs say together (build tag kafka)
//	run fakes [-size MB]          the product between a synthetic source and a target that keeps nothing
//	run hot <FILE                 what benchstat says in CSV, as one table
//	run copier, engine, floor, sink, reader, source, target      the processes that these start
//
// See BENCHMARKS.md for what is measured, and how.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"apograph/bench/figures"
)

// commands are this program's commands.
var commands = map[string]func(ctx context.Context, args []string) error{
	"copier": copierCommand,
	"engine": engineCommand,
	"fakes":  fakesCommand,
	"floor":  floorCommand,
	"hot":    hotCommand,
	"kafka":  kafkaCommand,
	"reader": readerCommand,
	"sink":   sinkCommand,
	"source": sourceCommand,
	"table":  tableCommand,
	"target": targetCommand,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := dispatch(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// hotCommand writes the table of the hot functions.
func hotCommand(context.Context, []string) error {
	table, err := figures.Hot(os.Stdin)
	fmt.Print(table)
	return err
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: run kafka|fakes [FLAG...]")
	}
	command, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("no command %q", args[0])
	}
	return command(ctx, args[1:])
}
