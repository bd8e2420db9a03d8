//! Names and passwords: basic authentication.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, anyhow, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bcrypt::HashParts;
use hyper::header::{AUTHORIZATION, HeaderMap};
use ring::hmac;
use ring::rand::SystemRandom;
use talea_http::turns::{Client, Turn, Turns};

/// The number of passwords that are compared at once: guessing takes one core at most.
pub(super) const CHECKS_AT_ONCE: usize = 1;
/// The number of requests that may wait for that, which bounds the memory that they take.
pub(super) const CHECKS_WAITING: usize = 64;

/// From what bcrypt takes at least to what takes some ten seconds; each more doubles it.
const COSTS: std::ops::RangeInclusive<u32> = 4..=18;

/// The reason for which a request is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There is no right name and password.
    Unauthorized,
    /// Too many clients wait to have their passwords checked.
    Busy,
}

pub(super) struct Passwords {
    users: HashMap<Vec<u8>, Arc<User>>,
    /// Their names, to take one by number.
    all: Vec<Arc<User>>,
    /// Random, so that a remembered tag is of no use to a reader of the memory.
    key: hmac::Key,
    checks: Turns,
}

struct User {
    /// By bcrypt.
    hash: String,
    /// The password that was right last, under the random key: to compare with the hash takes as
    /// long as many a scrape.
    right: Mutex<Option<hmac::Tag>>,
}

impl Passwords {
    pub(super) fn new(users: BTreeMap<String, String>, checks: Turns) -> Result<Self> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| anyhow!("the system returned no random numbers"))?;
        let mut by_name = HashMap::new();
        for (name, hash) in users {
            check(&name, &hash)?;
            by_name.insert(name.into_bytes(), Arc::new(User { hash, right: Mutex::new(None) }));
        }
        let all = by_name.values().cloned().collect();
        Ok(Self { users: by_name, all, key, checks })
    }

    /// Admits headers that have a name and its password.
    pub(super) async fn admit(&self, headers: &HeaderMap, client: IpAddr) -> Result<(), Refusal> {
        let Some((name, password)) = given(headers) else {
            return Err(Refusal::Unauthorized);
        };
        let user = self.users.get(&name);
        let remembered = || user.is_some_and(|user| user.remembers(&self.key, &password));
        if remembered() {
            return Ok(());
        }
        let client = Client::new(Some(client), name.clone());
        let turn = self.checks.turn(client).await.map_err(|_| Refusal::Busy)?;
        // Another request may have had the same password checked meanwhile.
        if remembered() {
            return Ok(());
        }
        let right = match user {
            Some(user) => self.compare(turn, user, password).await,
            None => {
                // It takes as long as for a user that exists, always one and the same for a
                // name: the time does not show which names there are.
                self.compare(turn, self.somebody(&name), password).await;
                false
            }
        };
        if right { Ok(()) } else { Err(Refusal::Unauthorized) }
    }

    /// Runs on a thread of its own, to the end even if the client is gone.
    async fn compare(&self, turn: Turn, user: &Arc<User>, password: Vec<u8>) -> bool {
        let (user, key) = (user.clone(), self.key.clone());
        let compared = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let right = bcrypt::verify(&password, &user.hash).unwrap_or(false);
            if right {
                user.remember(&key, &password);
            }
            right
        });
        compared.await.unwrap_or(false)
    }

    fn somebody(&self, name: &[u8]) -> &Arc<User> {
        let tag = hmac::sign(&self.key, name);
        let number = tag
            .as_ref()
            .iter()
            .fold(0, |sum, byte| (sum * 256 + usize::from(*byte)) % self.all.len());
        &self.all[number]
    }
}

impl User {
    /// In constant time.
    fn remembers(&self, key: &hmac::Key, password: &[u8]) -> bool {
        let right = *self.right.lock().unwrap_or_else(PoisonError::into_inner);
        right.is_some_and(|right| hmac::verify(key, password, right.as_ref()).is_ok())
    }

    fn remember(&self, key: &hmac::Key, password: &[u8]) {
        let tag = hmac::sign(key, password);
        *self.right.lock().unwrap_or_else(PoisonError::into_inner) = Some(tag);
    }
}

fn check(name: &str, hash: &str) -> Result<()> {
    if name.contains(':') {
        bail!("the name {name:?} has a colon, which ends a name");
    }
    // The error does not show the hash: it may be a password that was not hashed.
    let parts: HashParts = hash.parse().map_err(|_| {
        anyhow!("{name} has no bcrypt hash, expected one such as htpasswd -nB makes")
    })?;
    if !COSTS.contains(&parts.get_cost()) {
        bail!(
            "the hash of {name} has the cost {}, expected {} to {}",
            parts.get_cost(),
            COSTS.start(),
            COSTS.end()
        );
    }
    Ok(())
}

fn given(headers: &HeaderMap) -> Option<(Vec<u8>, Vec<u8>)> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, encoded) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") {
        return None;
    }
    let mut name = BASE64_STANDARD.decode(encoded).ok()?;
    let colon = name.iter().position(|byte| *byte == b':')?;
    let password = name.split_off(colon + 1);
    name.pop();
    Some((name, password))
}
