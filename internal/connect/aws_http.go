package connect

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// awsJSON is the form in which containers, instances and processes give
// credentials.
type awsJSON struct {
	Code         string    // of instances; empty or Success
	ID           string    `json:"AccessKeyId"`
	Secret       string    `json:"SecretAccessKey"`
	Token        string    `json:"Token"`        // of containers and instances
	SessionToken string    `json:"SessionToken"` // of processes
	End          time.Time `json:"Expiration"`
}

// parseAWS reads credentials. Errors hold nothing of the text.
func parseAWS(data []byte) (awsCredentials, error) {
	var c awsJSON
	if json.Unmarshal(data, &c) != nil || c.ID == "" || c.Secret == "" || c.Code != "" && c.Code != "Success" {
		return awsCredentials{}, errors.New("the answer holds no credentials")
	}
	if c.Token == "" {
		c.Token = c.SessionToken
	}
	return awsCredentials{id: hide(c.ID), secret: hide(c.Secret), session: hide(c.Token), end: c.End}, nil
}

// awsContainer asks the endpoint of ECS, or of EKS's pod identity.
func awsContainer(ctx context.Context, client *http.Client) (awsCredentials, error) {
	address := os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if relative := os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); relative != "" {
		address = "http://169.254.170.2" + relative
	}
	if address == "" {
		return awsCredentials{}, errNoAWS
	}
	u, err := url.Parse(address)
	if err != nil || !isLocalEndpoint(u) {
		return awsCredentials{}, errors.New("AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor an address of this machine or of a container agent")
	}
	headers := map[string]string{}
	if path := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); path != "" {
		data, err := readFile(path)
		if err != nil {
			return awsCredentials{}, fmt.Errorf("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: %w", err)
		}
		headers["Authorization"] = strings.TrimSpace(string(data))
	} else if text := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN"); text != "" {
		headers["Authorization"] = text
	}
	data, err := awsAsk(ctx, client, http.MethodGet, u, headers)
	if err != nil {
		return awsCredentials{}, err
	}
	return parseAWS(data)
}

// isLocalEndpoint reports whether a token may be sent to an endpoint: https, or
// one of the addresses that AWS's SDKs take.
func isLocalEndpoint(u *url.URL) bool {
	if u.Scheme == "https" {
		return true
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	return u.Scheme == "http" && (host == "localhost" || ip.IsLoopback() || host == "169.254.170.2" || host == "169.254.170.23" || host == "fd00:ec2::23")
}

// awsInstance asks the metadata of the instance, version 2.
func awsInstance(ctx context.Context, client *http.Client) (awsCredentials, error) {
	if strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		return awsCredentials{}, errNoAWS
	}
	base := strings.TrimSuffix(os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "/")
	if base == "" {
		base = "http://169.254.169.254"
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return awsCredentials{}, errors.New("AWS_EC2_METADATA_SERVICE_ENDPOINT is not a URL")
	}
	session, err := awsAsk(ctx, client, http.MethodPut, u.JoinPath("latest/api/token"), map[string]string{"X-aws-ec2-metadata-token-ttl-seconds": "300"})
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		return awsCredentials{}, err
	case err != nil:
		return awsCredentials{}, errNoAWS // not on an instance
	}
	headers := map[string]string{"X-aws-ec2-metadata-token": string(session)}
	roles := u.JoinPath("latest/meta-data/iam/security-credentials/")
	list, err := awsAsk(ctx, client, http.MethodGet, roles, headers)
	if errors.As(err, &refused) && refused.status == http.StatusNotFound {
		return awsCredentials{}, errNoAWS // an instance without a role
	}
	if err != nil {
		return awsCredentials{}, err
	}
	role, _, _ := strings.Cut(strings.TrimSpace(string(list)), "\n")
	data, err := awsAsk(ctx, client, http.MethodGet, roles.JoinPath(role), headers)
	if err != nil {
		return awsCredentials{}, err
	}
	return parseAWS(data)
}

// awsWebIdentity changes a token of the cluster, as EKS puts it into a file, for
// credentials of a role. The request to STS needs no signature.
func awsWebIdentity(ctx context.Context, client *http.Client, file, role, session string) (awsCredentials, error) {
	if file == "" || role == "" {
		return awsCredentials{}, errNoAWS
	}
	data, err := readFile(file)
	if err != nil {
		return awsCredentials{}, fmt.Errorf("web identity token file %s: %w", file, err)
	}
	if session == "" {
		session = "apograph"
	}
	u, err := url.Parse(stsEndpoint())
	if err != nil || u.Host == "" {
		return awsCredentials{}, errors.New("AWS_ENDPOINT_URL_STS is not a URL")
	}
	u.RawQuery = url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleArn": {role},
		"RoleSessionName": {session}, "WebIdentityToken": {strings.TrimSpace(string(data))},
	}.Encode()
	answer, err := awsAsk(ctx, client, http.MethodPost, u, nil)
	if err != nil {
		return awsCredentials{}, err
	}
	return parseSTS(answer)
}

func stsEndpoint() string {
	if address := os.Getenv("AWS_ENDPOINT_URL_STS"); address != "" {
		return address
	}
	region := os.Getenv("AWS_REGION")
	if region == "" {
		region = os.Getenv("AWS_DEFAULT_REGION")
	}
	switch {
	case region == "":
		return "https://sts.amazonaws.com/"
	case strings.HasPrefix(region, "cn-"):
		return "https://sts." + region + ".amazonaws.com.cn/"
	}
	return "https://sts." + region + ".amazonaws.com/"
}

func parseSTS(data []byte) (awsCredentials, error) {
	var answer struct {
		ID     string    `xml:"AssumeRoleWithWebIdentityResult>Credentials>AccessKeyId"`
		Secret string    `xml:"AssumeRoleWithWebIdentityResult>Credentials>SecretAccessKey"`
		Token  string    `xml:"AssumeRoleWithWebIdentityResult>Credentials>SessionToken"`
		End    time.Time `xml:"AssumeRoleWithWebIdentityResult>Credentials>Expiration"`
	}
	if xml.Unmarshal(data, &answer) != nil || answer.ID == "" || answer.Secret == "" {
		return awsCredentials{}, errors.New("the answer of STS holds no credentials")
	}
	return awsCredentials{id: hide(answer.ID), secret: hide(answer.Secret), session: hide(answer.Token), end: answer.End}, nil
}

// awsAsk sends one request; what a refusal says in XML or JSON is left out, for it
// may repeat the token.
func awsAsk(ctx context.Context, client *http.Client, method string, u *url.URL, headers map[string]string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, errors.New("no request can be made")
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the URL, which holds the token
		}
		return nil, fmt.Errorf("%s: %w", shortURL(u), err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", shortURL(u), err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %w", shortURL(u), &refusedError{status: response.StatusCode})
	}
	return data, nil
}
