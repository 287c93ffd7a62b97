use super::*;
use crate::limits::CODEC_DICTIONARIES_MAX;
use std::sync::atomic::AtomicBool;

/// Uses all dictionaries, or none.
struct User(AtomicBool);

impl DictionaryUser for User {
    fn uses(&self, _: u32) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn dictionaries_are_trained_again_as_soon_as_older_ones_are_not_needed_any_more() {
    let codecs = Codecs::new(Compression::Zstd, &Applications::default(), Dictionaries::in_memory());
    let user = Arc::new(User(AtomicBool::new(true)));
    let weak: Weak<dyn DictionaryUser> = Arc::<User>::downgrade(&user);
    codecs.add_user(weak);
    let mut samples = TrainingSamples::default();
    for i in 0u64..2000 {
        let (name, mail) = (i * 7919 % 10_007, i * 104_729 % 9973);
        samples.add(
            format!("{{\"id\":{i},\"name\":\"user-{name}\",\"mail\":\"{mail}@example.com\"}}").as_bytes(),
        );
    }
    let application = codecs.applications.number(0);
    let trained = |codecs: &Codecs| {
        codecs.train(application, &samples);
        codecs.counters.trainings.load(Ordering::Relaxed)
    };
    for count in 1..=CODEC_DICTIONARIES_MAX as u64 {
        assert_eq!(trained(&codecs), count);
    }
    assert_eq!(trained(&codecs), CODEC_DICTIONARIES_MAX as u64, "all are in use");
    user.0.store(false, Ordering::Relaxed);
    assert_eq!(trained(&codecs), CODEC_DICTIONARIES_MAX as u64 + 1);
    assert_eq!(codecs.ids().len(), 2);
}
