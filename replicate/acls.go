package replicate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/mm2"
)

// topicACLs returns all access control entries about topics.
func (c *cluster) topicACLs(ctx context.Context) (all []mm2.ACL, err error) {
	err = c.retry(ctx, surveyRetries, func(ctx context.Context) error {
		request := kmsg.NewPtrDescribeACLsRequest()
		request.ResourceType = kmsg.ACLResourceTypeTopic
		request.ResourcePatternType = kmsg.ACLResourcePatternTypeAny
		request.Operation, request.PermissionType = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
		response, err := request.RequestWith(ctx, c.client)
		if err == nil {
			err = kerr.ErrorForCode(response.ErrorCode)
		}
		if err != nil {
			return err
		}
		all = nil
		for _, r := range response.Resources {
			for _, a := range r.ACLs {
				all = append(all, mm2.ACL{
					Resource: r.ResourceType.String(), Pattern: r.ResourcePatternType.String(), Name: r.ResourceName,
					Principal: a.Principal, Host: a.Host, Operation: a.Operation.String(), Permission: a.PermissionType.String(),
				})
			}
		}
		return nil
	})
	slices.SortFunc(all, compareACLs)
	return all, err
}

func compareACLs(a, b mm2.ACL) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Pattern, b.Pattern), cmp.Compare(a.Principal, b.Principal),
		cmp.Compare(a.Host, b.Host), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Permission, b.Permission))
}

// acls returns the entries of a cluster; ok is false where there are none to be
// had, which is said once and keeps nothing else from being done.
func (f *Flow) acls(c *cluster) (all []mm2.ACL, ok bool) {
	all, err := c.topicACLs(f.ctx)
	switch {
	case err == nil:
		return all, true
	case f.ctx.Err() != nil:
	case errors.Is(err, kerr.SecurityDisabled):
		f.sayOnce(slog.LevelInfo, "acls "+c.alias, "the cluster has no authorizer, so that no access control entries go over", "cluster", c.alias)
	default:
		f.warnOnce("acls "+c.alias, "access control entries cannot be read, so that none go over", "cluster", c.alias, "error", err)
	}
	return nil, false
}

// syncACLs makes the entries on the target that it lacks. It takes none away, as
// MirrorMaker 2 does not, and nothing tells whose they are.
func (f *Flow) syncACLs() {
	source, ok := f.acls(f.source)
	if !ok {
		return
	}
	target, ok := f.acls(f.target)
	if !ok {
		return
	}
	for chunk := range slices.Chunk(f.missingACLs(source, target), describeChunk) {
		f.createACLs(chunk)
	}
}

// missingACLs returns what the target lacks of what the source's entries become.
func (f *Flow) missingACLs(source, target []mm2.ACL) (missing []mm2.ACL) {
	have := map[mm2.ACL]bool{}
	for _, a := range target {
		have[a] = true
	}
	for _, a := range source {
		made, ok := f.rules.TargetACL(a)
		if t := f.topics[a.Name]; !ok || have[made] || t != nil && t.stop != nil {
			continue // of a topic that is refused nothing goes over
		}
		have[made] = true // ALL and READ become the same
		missing = append(missing, made)
		if made.Name == "*" {
			f.warnOnce("acl "+aclText(made), "an access control entry about all topics goes over, and is about all of the target's, whether they are copies or not", "cluster", f.target.alias, "acl", aclText(made))
		}
	}
	return missing
}

func (f *Flow) createACLs(all []mm2.ACL) {
	request := kmsg.NewPtrCreateACLsRequest()
	for _, a := range all {
		creation := kmsg.NewCreateACLsRequestCreation()
		operation, unknown := kmsg.ParseACLOperation(a.Operation)
		permission, strange := kmsg.ParseACLPermissionType(a.Permission)
		if unknown != nil || strange != nil { // of a later Kafka
			f.warnOnce("acl "+aclText(a), "an access control entry cannot be made", "cluster", f.target.alias, "acl", aclText(a), "error", errors.Join(unknown, strange))
			continue
		}
		creation.ResourceType, creation.ResourceName, creation.ResourcePatternType = kmsg.ACLResourceTypeTopic, a.Name, kmsg.ACLResourcePatternTypeLiteral
		creation.Principal, creation.Host, creation.Operation, creation.PermissionType = a.Principal, a.Host, operation, permission
		request.Creations = append(request.Creations, creation)
	}
	if len(request.Creations) == 0 {
		return
	}
	response, err := request.RequestWith(f.ctx, f.target.client)
	if err == nil && len(response.Results) != len(request.Creations) {
		err = fmt.Errorf("%d answers about %d entries", len(response.Results), len(request.Creations))
	}
	if err != nil {
		f.warnOnce("acls made", "access control entries cannot be made", "cluster", f.target.alias, "error", err)
		return
	}
	for i, r := range response.Results {
		c := request.Creations[i]
		text := aclText(mm2.ACL{
			Resource: c.ResourceType.String(), Pattern: c.ResourcePatternType.String(), Name: c.ResourceName,
			Principal: c.Principal, Host: c.Host, Operation: c.Operation.String(), Permission: c.PermissionType.String(),
		})
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			f.warnOnce("acl "+text, "an access control entry cannot be made", "cluster", f.target.alias, "acl", text, "error", err)
			continue
		}
		f.config.Logger.Info("access control entry made", "cluster", f.target.alias, "acl", text)
	}
}

// aclText names an entry for a person.
func aclText(a mm2.ACL) string {
	text := fmt.Sprintf("%s %s %s on %s %s %s", a.Principal, a.Permission, a.Operation, strings.ToLower(a.Pattern), strings.ToLower(a.Resource), a.Name)
	if a.Host != "*" {
		text += " from " + a.Host
	}
	return text
}

// planACLs says of each topic which entries would be made, and which rights would
// not go over.
func (f *Flow) planACLs(described map[string]*TopicPlan, topics []*topic) {
	if !f.config.ACLs.Enabled {
		return
	}
	source, ok := f.acls(f.source)
	if !ok {
		return
	}
	target, ok := f.acls(f.target)
	if !ok {
		return
	}
	lacks := map[mm2.ACL]bool{}
	for _, a := range f.missingACLs(source, target) {
		lacks[a] = true
	}
	for _, t := range topics {
		p := described[t.name]
		for _, a := range source {
			if why := lostACL(a, t.name); why != "" {
				p.LostACLs = append(p.LostACLs, aclText(a)+": "+why)
			}
			if made, ok := f.rules.TargetACL(a); ok && a.Name == t.name && lacks[made] {
				delete(lacks, made)
				p.ACLs = append(p.ACLs, aclText(made))
			}
		}
	}
}

// lostACL says why an entry that is about a topic does not go over, or not whole;
// "" if it does.
func lostACL(a mm2.ACL, topic string) string {
	switch {
	case a.Pattern == "PREFIXED" && strings.HasPrefix(topic, a.Name):
		return "entries about prefixes are not copied"
	case a.Name != topic || a.Permission != "ALLOW":
	case a.Operation == "WRITE":
		return "not copied, so that only the copier writes"
	case a.Operation == "ALL":
		return "becomes READ, so that only the copier writes"
	}
	return ""
}
