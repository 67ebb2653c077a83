package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

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

// dialOptions returns how clients reach a cluster whose certificate, or whose
// authority's, is in a file; none of no file, which is without TLS.
func dialOptions(ca string) ([]kgo.Opt, error) {
	config, err := tlsConfig(ca)
	if config == nil || err != nil {
		return nil, err
	}
	return []kgo.Opt{kgo.DialTLSConfig(config)}, nil
}

func tlsConfig(ca string) (*tls.Config, error) {
	if ca == "" {
		return nil, nil
	}
	certificate, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	if !config.RootCAs.AppendCertsFromPEM(certificate) {
		return nil, fmt.Errorf("%s holds no certificate", ca)
	}
	return config, nil
}
