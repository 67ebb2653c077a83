package replicate

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/connect"
	"apograph/internal/kafkatest"
)

// TestProducerMemory: what the target's brokers say of how long they remember a
// producer counts, where they say so; the shortest time, and never more than the
// default.
func TestProducerMemory(t *testing.T) {
	for _, tt := range []struct {
		name string
		says []string // the brokers, in order; "": they may not be asked
		want time.Duration
	}{
		{"unknown", []string{"", ""}, 24 * time.Hour},
		{"one hour on one of two", []string{"86400000", "3600000"}, time.Hour},
		{"a week", []string{"604800000", "604800000"}, 7 * 24 * time.Hour},
		{"a week on one of two", []string{"604800000", "86400000"}, 24 * time.Hour},
		{"a week, and one does not say", []string{"604800000", ""}, 24 * time.Hour},
		{"for ever", []string{"9223372036854775807"}, longestMemory},
		{"no number", []string{"soon", "3600000"}, time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pair := kafkatest.NewPair(t, kafkatest.Options{TargetBrokers: len(tt.says)})
			fake := pair.Target.Fake()
			fake.ControlKey(int16(kmsg.DescribeConfigs), func(r kmsg.Request) (kmsg.Response, error, bool) {
				fake.KeepControl()
				request := r.(*kmsg.DescribeConfigsRequest)
				if request.Resources[0].ResourceType != kmsg.ConfigResourceTypeBroker {
					return nil, nil, false
				}
				return describedMemory(request, tt.says), nil, true
			})
			c, err := openCluster(t.Context(), connect.Cluster{Alias: "target", Bootstrap: pair.Target.Addresses, Options: pair.Target.DialOptions()})
			if err != nil {
				t.Fatal(err)
			}
			defer c.close()
			if got := c.producerMemory(t.Context()); got != tt.want {
				t.Errorf("producers are remembered for %v, want %v", got, tt.want)
			}
		})
	}
}

func describedMemory(request *kmsg.DescribeConfigsRequest, says []string) kmsg.Response {
	response := request.ResponseKind().(*kmsg.DescribeConfigsResponse)
	for _, resource := range request.Resources {
		x := kmsg.NewDescribeConfigsResponseResource()
		x.ResourceType, x.ResourceName = resource.ResourceType, resource.ResourceName
		if said := says[int(resource.ResourceName[0]-'0')]; said != "" {
			c := kmsg.NewDescribeConfigsResponseResourceConfig()
			c.Name, c.Value = "producer.id.expiration.ms", &said
			x.Configs = append(x.Configs, c)
		} else {
			x.ErrorCode = 31 // CLUSTER_AUTHORIZATION_FAILED
		}
		response.Resources = append(response.Resources, x)
	}
	return response
}

// TestStale: what the target remembers of a producer is not relied on near its end.
func TestStale(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		remembered, age time.Duration
		want            bool
	}{
		{24 * time.Hour, 11 * time.Hour, false},
		{24 * time.Hour, 13 * time.Hour, true},
		{time.Hour, 29 * time.Minute, false},
		{time.Hour, 31 * time.Minute, true},
		{20 * 24 * time.Hour, 19 * 24 * time.Hour, false},
		{20 * 24 * time.Hour, 20*24*time.Hour - time.Hour, true},
		{0, 0, false},
		{0, time.Second, true},
	} {
		f := &Flow{config: Config{Now: func() time.Time { return now }}}
		f.producerMemory.Store(int64(tt.remembered))
		if got := f.stale(now.Add(-tt.age).UnixMilli()); got != tt.want {
			t.Errorf("records %v old, producers remembered for %v: stale %v", tt.age, tt.remembered, got)
		}
	}
}
