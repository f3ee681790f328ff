package kubernetes

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/toryo-dev/toryo/internal/task"
)

// cluster is where the API server is and how it knows us.
type cluster struct {
	server *url.URL
	tls    *tls.Config
	token  func() (string, error) // empty for none
}

// accountFolder is where a pod finds its own account.
const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// connectionSettings finds the API server: by the file that is named, by the pod
// that this program is in, or by the usual file, in that order.
func connectionSettings(file, context string) (cluster, error) {
	if file == "" {
		if host := os.Getenv("KUBERNETES_SERVICE_HOST"); host != "" {
			return ownAccount(host, os.Getenv("KUBERNETES_SERVICE_PORT"))
		}
		file = os.Getenv("KUBECONFIG")
	}
	if file == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return cluster{}, task.Wrap(task.NotReady, err, "there is no home folder with a kubeconfig")
		}
		file = filepath.Join(home, ".kube", "config")
	}
	return readKubeconfig(file, context)
}

func ownAccount(host, port string) (cluster, error) {
	authorities, err := os.ReadFile(filepath.Join(accountFolder, "ca.crt"))
	if err != nil {
		return cluster{}, task.Wrap(task.NotReady, err, "this pod has no account of the cluster").
			WithHint("give the agent's pod a service account and let its token be mounted")
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authorities)
	return cluster{
		server: &url.URL{Scheme: "https", Host: net.JoinHostPort(host, port)},
		tls:    &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		token:  tokenFile(filepath.Join(accountFolder, "token")), // it is replaced from time to time
	}, nil
}

func tokenFile(file string) func() (string, error) {
	return func() (string, error) {
		text, err := os.ReadFile(file)
		return strings.TrimSpace(string(text)), err
	}
}

// kubeconfig is what we read of such a file.
type kubeconfig struct {
	CurrentContext string `yaml:"current-context"`
	Contexts       []struct {
		Name    string `yaml:"name"`
		Context struct {
			Cluster string `yaml:"cluster"`
			User    string `yaml:"user"`
		} `yaml:"context"`
	} `yaml:"contexts"`
	Clusters []struct {
		Name    string          `yaml:"name"`
		Cluster clusterSettings `yaml:"cluster"`
	} `yaml:"clusters"`
	Users []struct {
		Name string       `yaml:"name"`
		User userSettings `yaml:"user"`
	} `yaml:"users"`
}

type clusterSettings struct {
	Server   string `yaml:"server"`
	CAFile   string `yaml:"certificate-authority"`
	CAData   string `yaml:"certificate-authority-data"`
	Insecure bool   `yaml:"insecure-skip-tls-verify"`
	Name     string `yaml:"tls-server-name"`
	Proxy    string `yaml:"proxy-url"`
}

type userSettings struct {
	Token     string `yaml:"token"`
	TokenFile string `yaml:"tokenFile"`
	CertFile  string `yaml:"client-certificate"`
	CertData  string `yaml:"client-certificate-data"`
	KeyFile   string `yaml:"client-key"`
	KeyData   string `yaml:"client-key-data"`
	Username  string `yaml:"username"`
	Exec      any    `yaml:"exec"`
	Provider  any    `yaml:"auth-provider"`
}

func readKubeconfig(file, context string) (cluster, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return cluster{}, task.Wrap(task.NotReady, err, "the kubeconfig cannot be read").
			WithHint("name one with sandbox.kubernetes.kubeconfig, or run the agent in the cluster")
	}
	var settings kubeconfig
	if err := yaml.Unmarshal(text, &settings); err != nil {
		return cluster{}, task.Wrap(task.BadConfig, err, "the kubeconfig "+file+" is not valid")
	}
	if context == "" {
		context = settings.CurrentContext
	}
	for _, named := range settings.Contexts {
		if named.Name != context {
			continue
		}
		for _, at := range settings.Clusters {
			for _, user := range settings.Users {
				if at.Name == named.Context.Cluster && user.Name == named.Context.User {
					return combine(at.Cluster, user.User, filepath.Dir(file))
				}
			}
		}
	}
	return cluster{}, task.Errorf(task.BadConfig, "the kubeconfig %s has no context %q with a cluster and a user", file, context)
}

func combine(at clusterSettings, user userSettings, dir string) (cluster, error) {
	if user.Exec != nil || user.Provider != nil || user.Username != "" {
		return cluster{}, task.Errorf(task.Unsupported, "the user of the kubeconfig is known by a program or a password, which is not supported").
			WithHint("use a token or a certificate, such as the token of a service account")
	}
	if at.Proxy != "" {
		return cluster{}, task.Errorf(task.Unsupported, "the proxy-url of the kubeconfig is not supported").WithHint("set HTTPS_PROXY instead")
	}
	server, err := url.Parse(at.Server)
	if err != nil || server.Host == "" || (server.Scheme != "https" && server.Scheme != "http") {
		return cluster{}, task.Errorf(task.BadConfig, "the kubeconfig has no valid server: %q", at.Server)
	}
	made := cluster{server: server, tls: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: at.Name, InsecureSkipVerify: at.Insecure}} //nolint:gosec // the user's own setting
	authorities, err := fileOrData(at.CAFile, at.CAData, dir)
	if err != nil {
		return cluster{}, err
	}
	if authorities != nil {
		made.tls.RootCAs = x509.NewCertPool()
		if !made.tls.RootCAs.AppendCertsFromPEM(authorities) {
			return cluster{}, task.Errorf(task.BadConfig, "the certificate authority of the kubeconfig is not valid")
		}
	}
	err = made.identify(user, dir)
	return made, err
}

func (c *cluster) identify(user userSettings, dir string) error {
	switch {
	case user.Token != "":
		c.token = func() (string, error) { return user.Token, nil }
	case user.TokenFile != "":
		c.token = tokenFile(beside(dir, user.TokenFile))
	default:
		c.token = func() (string, error) { return "", nil }
	}
	certificate, err := fileOrData(user.CertFile, user.CertData, dir)
	if err != nil || certificate == nil {
		return err
	}
	key, err := fileOrData(user.KeyFile, user.KeyData, dir)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return task.Wrap(task.BadConfig, err, "the client certificate of the kubeconfig is not valid")
	}
	c.tls.Certificates = []tls.Certificate{pair}
	return nil
}

func fileOrData(file, data, dir string) ([]byte, error) {
	if data != "" {
		decoded, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return nil, task.Wrap(task.BadConfig, err, "the kubeconfig has data that is no base64")
		}
		return decoded, nil
	}
	if file == "" {
		return nil, nil
	}
	content, err := os.ReadFile(beside(dir, file))
	if err != nil {
		return nil, task.Wrap(task.BadConfig, err, "a file of the kubeconfig cannot be read")
	}
	return content, nil
}

func beside(dir, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}
