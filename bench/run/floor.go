package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchVersion is the last version of Fetch that names topics and does not number
// them, so that the floor needs no metadata.
const fetchVersion = 12

// floorCommand moves bytes through two sockets without looking at them: it fetches
// a topic over one connection, and writes the records of the answers, as they
// are, to another. It reads of them only where each batch ends, to know what to
// ask for next. What a copier costs beyond that is its own doing.
func floorCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("floor", flag.ContinueOnError)
	source := flags.String("source", "", "bootstrap server, which leads all partitions")
	topic := flags.String("topic", "", "to move")
	sink := flags.String("sink", "", "address that takes the bytes")
	ca := flags.String("ca", "", "file of the certificate that source and sink have; empty means no TLS")
	if err := flags.Parse(args); err != nil {
		return err
	}
	secure, err := tlsConfig(*ca)
	if err != nil {
		return err
	}
	dial, err := dialOptions(*ca)
	if err != nil {
		return err
	}
	ends, err := readEnds(ctx, *source, *topic, dial...)
	if err != nil {
		return err
	}
	from, err := dialFloor(ctx, strings.Split(*source, ",")[0], secure)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := dialFloor(ctx, *sink, secure)
	if err != nil {
		return err
	}
	defer to.Close()
	f := floor{topic: *topic, ends: newRemaining(ends), next: make(map[int32]int64), from: from, to: to, format: kmsg.NewRequestFormatter(kmsg.FormatterClientID("floor"))}
	for f.ends.any() {
		if err := f.move(); err != nil {
			return fmt.Errorf("move %s: %w", *topic, err)
		}
	}
	return nil
}

func dialFloor(ctx context.Context, address string, secure *tls.Config) (net.Conn, error) {
	if secure == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	return (&tls.Dialer{Config: secure}).DialContext(ctx, "tcp", address)
}

type floor struct {
	topic    string
	ends     remaining
	next     map[int32]int64
	from, to net.Conn
	format   *kmsg.RequestFormatter
	request  []byte
	answer   []byte
	number   int32
}

// move sends one fetch and passes its answer on.
func (f *floor) move() error {
	f.number++
	f.request = f.format.AppendRequest(f.request[:0], f.fetch(), f.number)
	if _, err := f.from.Write(f.request); err != nil {
		return err
	}
	var size [4]byte
	if _, err := io.ReadFull(f.from, size[:]); err != nil {
		return err
	}
	f.answer = slices.Grow(f.answer[:0], int(binary.BigEndian.Uint32(size[:])))[:binary.BigEndian.Uint32(size[:])]
	if _, err := io.ReadFull(f.from, f.answer); err != nil {
		return err
	}
	response := kmsg.NewPtrFetchResponse()
	response.SetVersion(fetchVersion)
	if err := response.ReadFrom(f.answer[5:]); err != nil { // behind the correlation id and the empty tags
		return err
	}
	for _, t := range response.Topics {
		for i := range t.Partitions {
			if err := f.pass(&t.Partitions[i]); err != nil {
				return err
			}
		}
	}
	return kerr.ErrorForCode(response.ErrorCode)
}

func (f *floor) fetch() *kmsg.FetchRequest {
	request := kmsg.NewPtrFetchRequest()
	request.SetVersion(fetchVersion)
	request.MaxWaitMillis, request.MinBytes, request.MaxBytes = 500, 1, 16<<20
	t := kmsg.NewFetchRequestTopic()
	t.Topic = f.topic
	for partition := range f.ends {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, f.next[partition], 4<<20
		t.Partitions = append(t.Partitions, p)
	}
	request.Topics = append(request.Topics, t)
	return request
}

// pass writes the records of one partition on and notes where they end. The end of
// an answer may hold the beginning of a batch, which comes again.
func (f *floor) pass(p *kmsg.FetchResponseTopicPartition) error {
	if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
		return err
	}
	if _, err := f.to.Write(p.RecordBatches); err != nil {
		return err
	}
	for b := p.RecordBatches; len(b) >= 27; {
		size := 12 + int(binary.BigEndian.Uint32(b[8:]))
		if size > len(b) {
			break
		}
		base, last := binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[23:])
		f.next[p.Partition] = int64(base) + int64(last) + 1
		b = b[size:]
	}
	if f.next[p.Partition] >= f.ends[p.Partition] {
		delete(f.ends, p.Partition)
	}
	return nil
}

// sinkCommand takes connections at an address that it writes to standard output,
// and drops what comes.
func sinkCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("sink", flag.ContinueOnError)
	keys := flags.String("keys", "", "file of certificate and key; empty means no TLS")
	if err := flags.Parse(args); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if *keys != "" {
		certificate, err := tls.LoadX509KeyPair(*keys, *keys)
		if err != nil {
			return err
		}
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13})
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	fmt.Println(listener.Addr())
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			_, _ = bufio.NewReaderSize(conn, 1<<20).WriteTo(io.Discard)
		}()
	}
}
