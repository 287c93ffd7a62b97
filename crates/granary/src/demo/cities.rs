//! Users' cities: real ones, the first with more users than the last.

const CITIES: &[&str] = &[
    "Tokyo",
    "Delhi",
    "Shanghai",
    "Sao Paulo",
    "Mexico City",
    "Cairo",
    "Mumbai",
    "Beijing",
    "Dhaka",
    "Osaka",
    "New York",
    "Karachi",
    "Buenos Aires",
    "Istanbul",
    "Kolkata",
    "Lagos",
    "Manila",
    "Rio de Janeiro",
    "Moscow",
    "Bogota",
    "Paris",
    "Jakarta",
    "Lima",
    "Bangkok",
    "Seoul",
    "Nagoya",
    "London",
    "Tehran",
    "Chicago",
    "Madrid",
];

/// The city of a user with this random number.
pub fn of(random: u64) -> &'static str {
    // City i has a share of n - i out of n (n + 1) / 2.
    let count = CITIES.len() as u64;
    let mut place = random % (count * (count + 1) / 2);
    for (i, city) in CITIES.iter().enumerate() {
        let share = count - i as u64;
        if place < share {
            return city;
        }
        place -= share;
    }
    unreachable!("the shares add up")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_city_has_its_share() {
        let count = CITIES.len() as u64;
        let of_city = |city: &str| (0..count * (count + 1) / 2).filter(|&n| of(n) == city).count();
        assert_eq!(of_city("Tokyo"), CITIES.len());
        assert_eq!(of_city("Madrid"), 1);
    }
}
