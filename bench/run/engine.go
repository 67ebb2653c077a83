package main

import (
	"context"
	"errors"
	"flag"
	"strings"

	"apograph/internal/connect"
	"apograph/replicate"
)

// engineCommand is the product's engine without its command line: for clusters with
// TLS, which the command line does not know.
func engineCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("engine", flag.ContinueOnError)
	source := flags.String("source", "", "bootstrap servers")
	target := flags.String("target", "", "bootstrap servers")
	topic := flags.String("topic", "", "to copy")
	path := flags.String("ledger", "", "file, which is created")
	ca := flags.String("ca", "", "file of the certificate that both clusters have; empty means no TLS")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dial, err := dialOptions(*ca)
	if err != nil {
		return err
	}
	summary, err := replicate.Run(ctx, replicate.Config{
		Source:     connect.Cluster{Alias: "source", Bootstrap: strings.Split(*source, ","), Options: dial},
		Target:     connect.Cluster{Alias: "target", Bootstrap: strings.Split(*target, ","), Options: dial},
		LedgerPath: *path, Topics: []string{*topic}, Once: true,
	})
	if err == nil && !summary.Complete {
		err = errors.New("the copy is not complete")
	}
	return err
}
