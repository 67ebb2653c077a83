package replicate_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/replicate"
)

// mustACL makes one entry about topics, given as principal, permission,
// operation, pattern and name.
func mustACL(t *testing.T, b kafkatest.Bootstrap, entry string) {
	t.Helper()
	f := strings.Fields(entry)
	c := kmsg.NewCreateACLsRequestCreation()
	c.ResourceType, c.Principal, c.Host, c.ResourceName = kmsg.ACLResourceTypeTopic, f[0], "*", f[4]
	var err error
	if c.PermissionType, err = kmsg.ParseACLPermissionType(f[1]); err != nil {
		t.Fatal(err)
	}
	if c.Operation, err = kmsg.ParseACLOperation(f[2]); err != nil {
		t.Fatal(err)
	}
	if c.ResourcePatternType, err = kmsg.ParseACLResourcePatternType(f[3]); err != nil {
		t.Fatal(err)
	}
	request := kmsg.NewPtrCreateACLsRequest()
	request.Creations = append(request.Creations, c)
	response, err := request.RequestWith(t.Context(), b.NewClient(t))
	if err != nil || response.Results[0].ErrorCode != 0 {
		t.Fatalf("%s: %v %+v", entry, err, response)
	}
}

// aclsOf returns a cluster's entries about topics, as mustACL takes them, sorted.
func aclsOf(t *testing.T, b kafkatest.Bootstrap) []string {
	t.Helper()
	request := kmsg.NewPtrDescribeACLsRequest()
	request.ResourceType, request.ResourcePatternType = kmsg.ACLResourceTypeTopic, kmsg.ACLResourcePatternTypeAny
	request.Operation, request.PermissionType = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	response, err := request.RequestWith(t.Context(), b.NewClient(t))
	if err != nil || response.ErrorCode != 0 {
		t.Fatalf("%v %+v", err, response)
	}
	all := []string{}
	for _, r := range response.Resources {
		for _, a := range r.ACLs {
			all = append(all, strings.Join([]string{a.Principal, a.PermissionType.String(), a.Operation.String(), r.ResourcePatternType.String(), r.ResourceName}, " "))
		}
	}
	slices.Sort(all)
	return all
}

// TestACLs: what goes over, what a dry run says of it, and that nothing is
// written twice or taken away.
func TestACLs(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	for _, entry := range []string{
		"User:alice ALLOW WRITE LITERAL t", "User:bob ALLOW ALL LITERAL t", "User:bob ALLOW READ LITERAL t", "User:carol ALLOW READ PREFIXED t",
		"User:dave DENY ALL LITERAL t", "User:erin ALLOW READ LITERAL elsewhere",
	} {
		mustACL(t, pair.Source.Bootstrap, entry)
	}
	mustACL(t, pair.Target.Bootstrap, "User:frank ALLOW READ LITERAL t")
	config := configFor(t, pair, "t")
	config.ACLs.Enabled = true
	plan, err := replicate.MakePlan(t.Context(), config, nil)
	if err != nil || len(plan.Refusals) > 0 {
		t.Fatalf("%v, refusals %q", err, plan.Refusals)
	}
	p := planTopic(t, plan, "t")
	wantSame(t, "entries that would be made", p.ACLs, []string{"User:bob ALLOW READ on literal topic t", "User:dave DENY ALL on literal topic t"})
	wantSame(t, "rights that would not go over", p.LostACLs, []string{
		"User:alice ALLOW WRITE on literal topic t: not copied, so that only the copier writes",
		"User:bob ALLOW ALL on literal topic t: becomes READ, so that only the copier writes",
		"User:carol ALLOW READ on prefixed topic t: entries about prefixes are not copied",
	})
	wantSame(t, "after a dry run", aclsOf(t, pair.Target.Bootstrap), []string{"User:frank ALLOW READ LITERAL t"})
	created := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.CreateACLs, Count: -1, Delay: time.Millisecond})
	config.ACLs.Enabled = false
	mustComplete(t, pair, config)
	wantSame(t, "without the sync", aclsOf(t, pair.Target.Bootstrap), []string{"User:frank ALLOW READ LITERAL t"})
	config.ACLs.Enabled = true
	var log bytes.Buffer
	config.Logger = slog.New(slog.NewTextHandler(&log, nil))
	for range 2 {
		mustComplete(t, pair, config)
		wantSame(t, "after the sync", aclsOf(t, pair.Target.Bootstrap),
			[]string{"User:bob ALLOW READ LITERAL t", "User:dave DENY ALL LITERAL t", "User:frank ALLOW READ LITERAL t"})
	}
	if n, made := created.Hits(), strings.Count(log.String(), "access control entry made"); n != 1 || made != 2 {
		t.Errorf("%d requests that make entries, and %d entries made, want 1 and 2", n, made)
	}
	if plan, err = replicate.MakePlan(t.Context(), config, nil); err != nil || planTopic(t, plan, "t").ACLs != nil {
		t.Errorf("%v, then still to be made: %q", err, planTopic(t, plan, "t").ACLs)
	}
}

func wantSame(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// TestACLsFollowTheSource while the flow runs, under the names of a policy.
func TestACLsFollowTheSource(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	config := livingConfig(t, pair, "t")
	config.ACLs = replicate.ACLSync{Enabled: true, Interval: config.RefreshInterval}
	config.Policy = mustPolicy(t, nil)
	l := live(t, pair, config)
	l.at("t", 0, 0)
	mustACL(t, pair.Source.Bootstrap, "User:bob ALLOW READ LITERAL t")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for len(aclsOf(t, pair.Target.Bootstrap)) == 0 && ctx.Err() == nil {
		l.at("t", 0, 0)
	}
	l.end()
	wantSame(t, "on the target", aclsOf(t, pair.Target.Bootstrap), []string{"User:bob ALLOW READ LITERAL source.t"})
	proveAs(t, pair.Source.Bootstrap, pair.Target.Bootstrap, config.LedgerPath, map[string]string{"t": "source.t"})
}

// TestNoAuthorizer on either side is said once, and is nothing bad.
func TestNoAuthorizer(t *testing.T) {
	t.Parallel()
	for side := range 2 {
		pair := stored(t)
		mustTopic(t, pair.Source, "t", nil)
		mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
		cluster := []*kafkatest.Cluster{pair.Source, pair.Target}[side]
		asked := cluster.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.DescribeACLs, Count: -1, Err: kerr.SecurityDisabled})
		var log bytes.Buffer
		config := livingConfig(t, pair, "t")
		config.ACLs = replicate.ACLSync{Enabled: true, Interval: config.RefreshInterval}
		config.Logger = slog.New(slog.NewTextHandler(&log, nil))
		l := live(t, pair, config)
		l.at("t", 0, 5)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := asked.Wait(ctx, 3); err != nil {
			t.Fatal(err)
		}
		for _, s := range l.Status() {
			if s.State != replicate.StateRunning {
				t.Errorf("status %+v", s)
			}
		}
		l.end()
		if n := strings.Count(log.String(), "level=INFO msg=\"the cluster has no authorizer"); n != 1 || strings.Contains(log.String(), "level=WARN") {
			t.Errorf("it is said %d times:\n%s", n, log.String())
		}
		prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, config.LedgerPath, "t")
	}
}
