package connect

import "github.com/twmb/franz-go/pkg/sasl"

func (p *properties) aws(m loginModule) sasl.Mechanism {
	p.problem("sasl.mechanism", "AWS_MSK_IAM is not supported yet")
	return nil
}
