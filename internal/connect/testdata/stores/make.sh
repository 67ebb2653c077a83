#!/bin/sh
# Makes the key and trust stores of the tests of this package, with OpenSSL 3 and
# keytool of Java 17. Run it in its directory; it replaces all that is there.
#
# One authority signs a server (localhost, 127.0.0.1) and a client. Store
# passwords are "store-canary", those of keys in stores that can have another
# "key-canary". Everything is valid into the year 2105.
set -eu
cd "$(dirname "$0")"
rm -f ./*.pem ./*.jks ./*.p12 ./*.jceks
store=store-canary
key=key-canary
valid='-startdate 2020/01/01 -validity 31000'

keytool -genkeypair -alias ca -dname "CN=apograph test authority" -keyalg EC -groupname secp256r1 $valid -ext bc:c=ca:true -ext ku:c=keyCertSign \
	-keystore ca-keys.p12 -storepass $store
keytool -exportcert -rfc -alias ca -keystore ca-keys.p12 -storepass $store > ca.pem
issue() { # name, subject, kind of key, extension
	keytool -genkeypair -alias "$1" -dname "$2" -keyalg "$3" -keystore "$1-keys.p12" -storepass $store
	keytool -certreq -alias "$1" -keystore "$1-keys.p12" -storepass $store |
		keytool -gencert -rfc -alias ca -keystore ca-keys.p12 -storepass $store $valid -ext "$4" > "$1.pem"
	openssl pkcs12 -in "$1-keys.p12" -nocerts -nodes -passin pass:$store | openssl pkcs8 -topk8 -nocrypt -out "$1.key"
}
issue server CN=localhost RSA san=dns:localhost,ip:127.0.0.1
issue common-name CN=localhost EC bc=ca:false
issue client "CN=client,O=apograph" RSA eku=clientAuth
rm -f ./*-keys.p12
mv server.key server-key.pem
mv common-name.key common-name-key.pem

# Key stores of the client.
openssl pkcs12 -export -in client.pem -inkey client.key -certfile ca.pem -name client -passout pass:$store -out key.p12
openssl pkcs12 -export -legacy -certpbe PBE-SHA1-RC2-40 -keypbe PBE-SHA1-3DES -macalg sha1 -in client.pem -inkey client.key -certfile ca.pem \
	-name client -passout pass:$store -out key-legacy.p12
keytool -importkeystore -noprompt -srckeystore key.p12 -srcstoretype PKCS12 -srcstorepass $store -srcalias client \
	-destkeystore key.jks -deststoretype JKS -deststorepass $store -destkeypass $key -destalias client
keytool -importkeystore -noprompt -srckeystore key.p12 -srcstoretype PKCS12 -srcstorepass $store -srcalias client \
	-destkeystore key-same.jks -deststoretype JKS -deststorepass $store -destkeypass $store -destalias client
keytool -importkeystore -noprompt -srckeystore key.p12 -srcstorepass $store -destkeystore key-pkcs12.jks -deststorepass $store # PKCS12, in spite of its name
keytool -importkeystore -noprompt -srckeystore key.p12 -srcstoretype PKCS12 -srcstorepass $store \
	-destkeystore key.jceks -deststoretype JCEKS -deststorepass $store -destkeypass $store

# Trust stores.
keytool -importcert -noprompt -alias ca -file ca.pem -keystore trust.jks -storetype JKS -storepass $store
keytool -importcert -noprompt -alias ca -file ca.pem -keystore trust.p12 -storetype PKCS12 -storepass $store
keytool -importcert -noprompt -alias ca -file ca.pem -keystore trust-pkcs12.jks -storepass $store
keytool -importcert -noprompt -alias ca -file ca.pem -keystore trust-open.p12 -storetype PKCS12 -storepass $store \
	-J-Dkeystore.pkcs12.certProtectionAlgorithm=NONE -J-Dkeystore.pkcs12.macAlgorithm=NONE
openssl pkcs12 -export -nokeys -in ca.pem -passout pass:$store -out trust-openssl.p12 # without Java's attribute
cp key.jks mixed.jks
keytool -importcert -noprompt -alias ca -file ca.pem -keystore mixed.jks -storepass $store
cp key-pkcs12.jks mixed.p12
keytool -importcert -noprompt -alias other -file ca.pem -keystore mixed.p12 -storepass $store

# Keys of the client in PEM. Java 17 reads the first three.
cat client.pem ca.pem > client-chain.pem
encrypt() { # name, options
	name=$1
	shift
	{ openssl pkcs8 -topk8 -in client.key -passout pass:$key "$@"; cat client-chain.pem; } > "$name.pem"
}
encrypt key-plain -nocrypt
encrypt key-pbes1-3des -v1 PBE-SHA1-3DES
encrypt key-pbes1-md5 -provider legacy -provider default -v1 PBE-MD5-DES
encrypt key-pbes1-sha1 -provider legacy -provider default -v1 PBE-SHA1-DES
encrypt key-pbes1-2des -v1 PBE-SHA1-2DES
encrypt key-pbes1-rc2 -provider legacy -provider default -v1 PBE-SHA1-RC2-128
encrypt key-pbes2-aes256 -v2 aes-256-cbc -v2prf hmacWithSHA256
encrypt key-pbes2-aes128-sha1 -v2 aes-128-cbc -v2prf hmacWithSHA1
encrypt key-pbes2-aes192-sha512 -v2 aes-192-cbc -v2prf hmacWithSHA512
encrypt key-pbes2-3des -v2 des3
encrypt key-scrypt -scrypt -v2 aes-256-cbc
{ openssl rsa -traditional -in client.key; cat client.pem; } > key-pkcs1.pem
{ openssl rsa -traditional -aes128 -passout pass:$key -in client.key; cat client.pem; } > key-old.pem

rm -f ./*.key ./*.csr ./*.ext ./*.srl
