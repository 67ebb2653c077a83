package connect

import "github.com/twmb/franz-go/pkg/sasl"

func (p *properties) oauth(m loginModule) sasl.Mechanism {
	p.problem("sasl.mechanism", "OAUTHBEARER is not supported yet")
	return nil
}
